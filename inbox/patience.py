"""Sockets that wait for slow clients: not for long, and never in all threads at once."""

import errno
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from threading import Lock
from typing import Any

HEAD_SECONDS = 10.0
# Who keeps this pace is never too slow, however much there is to send or read. A body may fall so far behind it.
BYTES_PER_SECOND = 64 * 1024
BODY_SECONDS = 30.0
PAUSE_SECONDS = 10.0
# Clients that are merely busy have pauses of this length, many of them at the same time.
GRACE_SECONDS = 0.1
# Who is quicker for a while may pause for longer afterwards.
_MOST_AHEAD_SECONDS = 2.0
# The system says that there is room only once a third of its buffer is free, and takes something long before.
_TRY_AGAIN_SECONDS = 1.0


class NotYet(Exception):
    """What should be read has not come, and nobody wants to wait for it."""


class TooSlow(ConnectionResetError):
    """Reads to gunicorn like a client that hung up, which is nothing that it would log or answer."""

    def __init__(self) -> None:
        super().__init__(errno.ECONNRESET, "The client is too slow")


class Places:
    """For so many threads that wait longer than the grace. Whoever is furthest behind makes room for others."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._slow_since: dict[PatientSocket, float] = {}

    @contextmanager
    def one_for(self, waiting: "PatientSocket", slow_since: float) -> Iterator[None]:
        with self._lock:
            self._slow_since[waiting] = slow_since
            if len(self._slow_since) > self._most:
                slowest = min(self._slow_since, key=self._slow_since.__getitem__)
                del self._slow_since[slowest]
                # While we have the lock its thread is still here, and the socket is no other one by now.
                slowest.cut()
        try:
            yield
        finally:
            with self._lock:
                self._slow_since.pop(waiting, None)


class PatientSocket(socket.socket):
    """Never blocks in the kernel. What gunicorn says of blocking and timeouts makes no difference to it."""

    def __init__(self, accepted: socket.socket, places: Places) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        super().setblocking(False)
        self._places = places
        self._is_cut = False
        # For each direction of the request under way: when it was first waited for, and later the more came since then.
        self._slow_since: dict[int, float] = {}
        # Since when nothing at all has come or gone.
        self._stuck_since: dict[int, float] = {}
        # Who only gathers what is there waits so long and no longer.
        self._moment_ms: int | None = None

    def setblocking(self, _flag: bool) -> None:
        pass

    def settimeout(self, _seconds: float | None) -> None:
        pass

    def begin_request(self) -> None:
        self._slow_since.clear()
        self._stuck_since.clear()

    def expect_no_more(self) -> None:
        """From now on whatever has not come is too slow."""
        self._slow_since[select.POLLIN] = -inf

    def gather(self, moment_ms: int = 0) -> None:
        """From now on NotYet where there is nothing to read, at the latest after a moment."""
        self._moment_ms = moment_ms

    def wait(self) -> None:
        """From now on whoever reads waits, as is usual."""
        self._moment_ms = None

    def recv(self, size: int, flags: int = 0) -> bytes:
        while True:
            try:
                piece = super().recv(size, flags)
            except BlockingIOError:
                # With flags it is a look that must not take any time.
                if flags:
                    raise
                self._wait_for(select.POLLIN)
            else:
                if not flags:
                    self._catch_up(select.POLLIN, len(piece))
                return piece

    def send(self, data: Any, flags: int = 0) -> int:
        while True:
            try:
                sent = super().send(data, flags)
            except BlockingIOError:
                self._wait_for(select.POLLOUT)
            else:
                self._catch_up(select.POLLOUT, sent)
                return sent

    def sendall(self, data: Any, flags: int = 0) -> None:
        sent = self.send(data, flags)
        if sent < len(data):
            rest = memoryview(data)[sent:]
            while rest:
                rest = rest[self.send(rest, flags) :]

    def cut(self) -> None:
        """Ends the wait of another thread."""
        self._is_cut = True
        # Who waits to be read from may still be told that its body did not come.
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR if select.POLLOUT in self._slow_since else socket.SHUT_RD)

    def _catch_up(self, event: int, size: int) -> None:
        self._stuck_since.pop(event, None)
        since = self._slow_since.get(event)
        if since is not None:
            self._slow_since[event] = min(since + size / BYTES_PER_SECOND, time.monotonic() + _MOST_AHEAD_SECONDS)

    def _wait_for(self, event: int) -> None:
        """Until it is worth another try."""
        if self._moment_ms is not None:
            # Once: byte by byte it could go on like that for ever.
            moment_ms, self._moment_ms = self._moment_ms, 0
            if not (moment_ms and self._has(event, moment_ms)):
                raise NotYet
            return
        now = time.monotonic()
        since = self._slow_since.setdefault(event, now)
        give_up_at = self._stuck_since.setdefault(event, now) + PAUSE_SECONDS
        grace = since + GRACE_SECONDS - now
        if grace > 0:
            if self._has(event, grace * 1000):
                return
            now += grace
        if event == select.POLLIN:
            give_up_at = min(give_up_at, since + BODY_SECONDS)
        if give_up_at <= now:
            raise TooSlow
        with self._places.one_for(self, since):
            self._has(event, min(give_up_at - now, _TRY_AGAIN_SECONDS) * 1000)
        if self._is_cut:
            raise TooSlow

    def _has(self, event: int, milliseconds: float) -> bool:
        poller = select.poll()
        poller.register(self, event)
        return bool(poller.poll(milliseconds))
