"""All connections of a process, and their shared limits."""

import time
from typing import TYPE_CHECKING

from inbox.errors import Overloaded

if TYPE_CHECKING:
    from inbox.server.connection import Connection

HEAD_SECONDS = 10.0
# A client that transfers at this pace never times out. A slower one may be this many seconds behind it.
_BYTES_PER_SECOND = 64 * 1024
TRANSFER_SECONDS = 30.0
PAUSE_SECONDS = 10.0


class Transfer:
    """Tracks the progress of a body or an answer, and computes its deadline."""

    def __init__(self) -> None:
        self._started_at = self._progress_at = time.monotonic()
        self._bytes = 0

    def add(self, size: int) -> None:
        self._bytes += size
        self._progress_at = time.monotonic()

    @property
    def deadline(self) -> float:
        behind_pace = self._started_at + TRANSFER_SECONDS + self._bytes / _BYTES_PER_SECOND
        return min(behind_pace, self._progress_at + PAUSE_SECONDS)


class Connections:
    def __init__(self, max_connections: int, max_held_bytes: int) -> None:
        self._max_connections = max_connections
        self._max_held_bytes = max_held_bytes
        self._held_bytes = 0
        self._all: set[Connection] = set()
        # Oldest first.
        self._idle: dict[Connection, None] = {}
        self._transferring: dict[Connection, None] = {}
        self.is_stopping = False

    def __len__(self) -> int:
        return len(self._all)

    def add(self, connection: "Connection") -> bool:
        """At the limit, closes the longest idle connection or the oldest transfer. Returns False if all are busy."""
        if len(self._all) >= self._max_connections:
            oldest = next(iter(self._idle), None) or next(iter(self._transferring), None)
            if oldest is None:
                return False
            oldest.abort()
            self.remove(oldest)
        self._all.add(connection)
        return True

    def remove(self, connection: "Connection") -> None:
        self._all.discard(connection)
        self.mark_busy(connection)
        self.hold(connection, 0)

    def mark_idle(self, connection: "Connection") -> None:
        self._idle[connection] = None

    def mark_busy(self, connection: "Connection") -> None:
        self._idle.pop(connection, None)

    def hold(self, connection: "Connection", held_bytes: int, *, transferring: bool = False) -> None:
        """Sets how many bytes a connection holds. Cancels the oldest transfers if all together exceed the limit.

        Raises Overloaded if the connection's own transfer is among them.
        """
        self._held_bytes += held_bytes - connection.held_bytes
        connection.held_bytes = held_bytes
        if transferring:
            self._transferring.setdefault(connection)
        else:
            self._transferring.pop(connection, None)
        while self._held_bytes > self._max_held_bytes and self._transferring:
            oldest = next(iter(self._transferring))
            self.hold(oldest, 0)
            if oldest is connection:
                # It is running, and cannot be interrupted.
                raise Overloaded
            oldest.cancel_transfer()

    def check_deadlines(self) -> None:
        now = time.monotonic()
        for connection in [each for each in self._all if each.deadline <= now]:
            connection.time_out()

    def stop(self) -> None:
        """Closes idle connections. From now on each of the others closes after its answer."""
        self.is_stopping = True
        for connection in list(self._idle):
            connection.wake()

    def abort(self) -> None:
        for connection in list(self._all):
            connection.abort()
