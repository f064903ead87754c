"""gunicorn's threaded worker: threads stay with busy connections, waits end when it stops, refusals are problems."""

import select
import threading
from collections import deque
from typing import Any

from gunicorn.http.errors import ParseException
from gunicorn.util import write_nonblock
from gunicorn.workers.gthread import PollableMethodQueue

from inbox.api.problem_catalogue import BAD_REQUEST
from inbox.api.problems import CONTENT_TYPE, problem_document
from inbox.api.request_trail import new_request_id
from inbox.api.services import services_of
from inbox.lobby import LATER, Lobby

_NEXT_REQUEST_MS = 20


class LastingQueue(PollableMethodQueue):  # type: ignore[misc]
    def close(self) -> None:
        """Stays open to the end of the process.

        Threads that outlive the grace of a stop still write a byte to it, by its number. Were that free, SQLite might
        have opened its file under it.
        """


class InboxWorker(Lobby):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.method_queue = LastingQueue()
        # A counter that threads may change at the same time.
        self._busy: deque[None] = deque()
        self._most_staying: int = self.cfg.threads * 3 // 4

    def run(self) -> None:
        super().run()
        # What the last requests have added, now that threads can still be had.
        services_of(self.wsgi).flush_counts()

    def handle(self, conn: Any) -> Any:
        """Serves a connection's requests for as long as they follow each other closely.

        gunicorn hands a connection back to its main thread after each request, which costs as much as a small one.
        """
        self._busy.append(None)
        try:
            outcome = self._serve(conn)
            while outcome is True and self._has_next(conn):
                outcome = self._serve(conn)
        finally:
            self._busy.pop()
        return outcome

    def _serve(self, conn: Any) -> Any:
        if not conn.parser.has_request(0 if self._is_crowded() else _NEXT_REQUEST_MS):
            return LATER
        return super().handle(conn)

    def _is_crowded(self) -> bool:
        # Some threads stay free for other connections, however busy this one is.
        return len(self._busy) > self._most_staying

    def _has_next(self, conn: Any) -> bool:
        # What came along with the last request is in gunicorn's hands already, and it takes care of that.
        if not self.alive or self._is_crowded() or conn.parser.unreader.buf.getvalue():
            return False
        poller = select.poll()
        poller.register(conn.sock, select.POLLIN)
        return bool(poller.poll(_NEXT_REQUEST_MS))

    def handle_exit(self, sig: int, frame: Any) -> None:
        self._begin_to_stop()
        super().handle_exit(sig, frame)

    def handle_quit(self, sig: int, frame: Any) -> None:
        """Ctrl-C finishes what has begun as well."""
        self.handle_exit(sig, frame)

    def is_parent_alive(self) -> bool:
        """An orphan stops at once: as long as it serves busy connections, its successor cannot have the port."""
        if super().is_parent_alive():
            return True
        self._begin_to_stop()
        self.alive = False
        return False

    def _begin_to_stop(self) -> None:
        if self.booted and self.alive:
            services_of(self.wsgi).waits.stop()
            # By gunicorn's loop: a signal may have come while a thread is being started.
            self.method_queue.defer(self._flush_counts_early)

    def _flush_counts_early(self) -> None:
        """Whoever does not finish its request keeps the worker until it is killed, and nothing may be lost by that."""
        threading.Thread(target=services_of(self.wsgi).flush_counts, name="last flush", daemon=True).start()

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Answers a request that is not HTTP enough to reach the app."""
        if not isinstance(exc, ParseException):
            super().handle_error(req, client, addr, exc)
            return
        request_id = new_request_id()
        # The kind alone: the message quotes what was sent, and that may be a key or the end of a payload.
        self.log.warning("Not a request that can be read (%s, request id %s)", type(exc).__name__, request_id)
        body = problem_document(BAD_REQUEST, BAD_REQUEST.meaning, request_id)
        head = (
            f"HTTP/1.1 {BAD_REQUEST.status} {BAD_REQUEST.title}\r\n"
            f"Connection: close\r\nContent-Type: {CONTENT_TYPE}\r\n"
            f"Content-Length: {len(body)}\r\nX-Request-Id: {request_id}\r\n\r\n"
        )
        try:
            write_nonblock(client, head.encode() + body)
        except OSError:
            self.log.debug("The client did not wait for its answer")
