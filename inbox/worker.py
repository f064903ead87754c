"""gunicorn's threaded worker: waits end when it stops, and its own refusals are problem documents too."""

from typing import Any

from gunicorn.http.errors import ParseException
from gunicorn.util import write_nonblock
from gunicorn.workers.gthread import ThreadWorker

from inbox.api.problem_catalogue import BAD_REQUEST
from inbox.api.problems import CONTENT_TYPE, problem_document
from inbox.api.request_trail import new_request_id
from inbox.api.services import services_of


class InboxWorker(ThreadWorker):  # type: ignore[misc]
    def handle_exit(self, sig: int, frame: Any) -> None:
        self._end_waits()
        super().handle_exit(sig, frame)

    def handle_quit(self, sig: int, frame: Any) -> None:
        self._end_waits()
        super().handle_quit(sig, frame)

    def _end_waits(self) -> None:
        if self.booted:
            services_of(self.wsgi).waits.stop()

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
