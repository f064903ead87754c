"""gunicorn's threaded worker, with room for connections that no thread is with: idle, late or closing."""

import selectors
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

from inbox.arriving import ArrivingParser
from inbox.patience import PatientSocket, Places

_LINGER_SECONDS = 2
_LINGER_BYTES = 64 * 1024
_MOST_LATE = 1024
_CANNOT_ACCEPT_SECONDS = 0.05
# What a thread says of a request that is not all here.
LATER = object()

# The longest there first, and when they have to leave.
Room = OrderedDict[Any, float]


class Lobby(ThreadWorker):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # It would block where a client reads nothing.
        self.cfg.set("sendfile", False)
        # Half of the threads may be with long polls, so that a quarter is left.
        self._places = Places(max(1, self.cfg.threads // 4))
        # Nothing was sent yet; between two requests (gunicorn counts those); a request came in part; closing.
        self._new: Room = OrderedDict()
        self.keepalived_conns: Room = OrderedDict()
        self._late: Room = OrderedDict()
        self._lingering: Room = OrderedDict()
        self._next_look = 0.0

    def accept(self, listener: Any) -> None:
        try:
            accepted, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # Another process was faster, or the client has changed its mind.
        except OSError as error:
            self.log.warning("A connection cannot be accepted (%s)", error.strerror)
            # It stays in the queue and would wake us again at once.
            if not self._make_room():
                time.sleep(_CANNOT_ACCEPT_SECONDS)
            return
        self.nr_conns += 1
        conn = TConn(self.cfg, PatientSocket(accepted, self._places), address, listener.getsockname())
        conn.parser = ArrivingParser(self.cfg, conn.sock, address)
        conn.data_ready = True
        # Most send their request at once.
        self.enqueue_req(conn)

    def finish_request(self, conn: Any, future: Any) -> None:
        try:
            self._go_on_with(conn, not future.cancelled() and future.result())
        except Exception:
            # One connection is no reason to lose all the others.
            self.log.exception("A connection is given up")
            self._close(conn)

    def _go_on_with(self, conn: Any, outcome: Any) -> None:
        if outcome is LATER:
            self._wait_for_rest(conn)
        elif not outcome or not self.alive:
            self._linger(conn)
        elif conn.parser.unreader.buf.getvalue():
            self.enqueue_req(conn)
        else:
            self._wait_for_request(conn)

    def _wait_for_request(self, conn: Any) -> None:
        room = self.keepalived_conns if conn.parser.req_count else self._new
        self._wait_in(room, conn, time.monotonic() + self.cfg.keepalive, self._serve_again)

    def _wait_for_rest(self, conn: Any) -> None:
        if conn.parser.deadline is None:
            self._wait_for_request(conn)
            return
        self._wait_in(self._late, conn, conn.parser.deadline, self._serve_again)
        # Whoever sends byte by byte may be in a thread whenever we look.
        if conn.parser.deadline <= time.monotonic():
            self._wait_no_longer(conn)
        elif len(self._late) > min(_MOST_LATE, self.worker_connections // 2):
            self._wait_no_longer(min(self._late, key=self._late.__getitem__))

    def _wait_in(self, room: Room, conn: Any, deadline: float, on_readable: Callable[[Room, Any, Any], None]) -> None:
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(on_readable, room, conn))
        room[conn] = deadline

    def _leave(self, room: Room, conn: Any) -> None:
        del room[conn]
        self.poller.unregister(conn.sock)

    def _serve_again(self, room: Room, conn: Any, _sock: Any) -> None:
        # In the same turn of gunicorn's loop it may have been closed to make room.
        if conn in room:
            self._leave(room, conn)
            self.enqueue_req(conn)

    def _linger(self, conn: Any) -> None:
        """Closes once the client has done so. A close with something unread would take back an answer on its way."""
        try:
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(conn)
            return
        self._wait_in(self._lingering, conn, time.monotonic() + _LINGER_SECONDS, self._drain)
        self._drain(self._lingering, conn, conn.sock)

    def _drain(self, room: Room, conn: Any, sock: Any) -> None:
        if conn not in room:
            return
        try:
            if sock.recv(_LINGER_BYTES, socket.MSG_DONTWAIT):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._close(conn, room)

    def _close(self, conn: Any, room: Room | None = None) -> None:
        if room is not None:
            self._leave(room, conn)
        self.nr_conns -= 1
        conn.close()

    def murder_pending(self) -> None:
        """Called by gunicorn after every turn."""
        if self.nr_conns >= self.worker_connections:
            self._make_room()
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + 1
        for conn in _overdue(self._late, now):
            self._wait_no_longer(conn)
        # Where we stop, whoever has just connected gets a second to send its request.
        new_until = now if self.alive else now + self.cfg.keepalive - 1
        for room, until in ((self._new, new_until), (self.keepalived_conns, now), (self._lingering, now)):
            for conn in _overdue(room, until):
                self._close(conn, room)

    def murder_keepalived(self, force: bool = False) -> None:
        if force:
            for conn in list(self.keepalived_conns):
                self._close(conn, self.keepalived_conns)

    def _make_room(self) -> bool:
        """Those go first that have shown nothing of themselves."""
        for room in (self._new, self._lingering, self.keepalived_conns):
            if room:
                self._close(next(iter(room)), room)
                return True
        return False

    def _wait_no_longer(self, conn: Any) -> None:
        if conn.parser.awaits_body:
            conn.parser.give_up()
            self._serve_again(self._late, conn, conn.sock)
        else:
            self.log.debug("A request did not come in time")
            self._close(conn, self._late)


def _overdue(room: Room, now: float) -> list[Any]:
    return [conn for conn, deadline in room.items() if deadline <= now]
