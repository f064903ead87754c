"""All connections of a process, and their shared limits."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inbox.server.connection import Connection

HEAD_SECONDS = 10.0
# A client that transfers at this pace never times out. A slower one may be this many seconds behind it.
_BYTES_PER_SECOND = 64 * 1024
TRANSFER_SECONDS = 30.0
PAUSE_SECONDS = 10.0


class Transfer:
    """How quickly a body arrives, or an answer is read."""

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

    def add(self, connection: "Connection") -> None:
        self._all.add(connection)
        self._idle[connection] = None

    def remove(self, connection: "Connection") -> None:
        self._all.discard(connection)
        self._idle.pop(connection, None)
        self.stop_holding(connection)

    def make_room(self) -> bool:
        """Returns True if one more connection fits. Closes the longest idle one if there is no room."""
        if len(self._all) >= self._max_connections:
            self.close_longest_idle()
        return len(self._all) < self._max_connections

    def close_longest_idle(self) -> None:
        """Closes the oldest transfer if no connection is idle."""
        connection = next(iter(self._idle), None) or next(iter(self._transferring), None)
        if connection is not None:
            connection.abort()
            self.remove(connection)

    def mark_idle(self, connection: "Connection") -> None:
        self._idle[connection] = None

    def mark_busy(self, connection: "Connection") -> None:
        self._idle.pop(connection, None)

    def hold(self, connection: "Connection", held_bytes: int, *, transferring: bool) -> None:
        """Counts bytes of a body or an answer. Above the limit the oldest transfers are given up."""
        self._held_bytes += held_bytes - connection.held_bytes
        connection.held_bytes = held_bytes
        if transferring:
            self._transferring.setdefault(connection)
        else:
            self._transferring.pop(connection, None)
        while self._held_bytes > self._max_held_bytes and self._transferring:
            oldest = next(iter(self._transferring))
            self.stop_holding(oldest)
            oldest.give_up()

    def stop_holding(self, connection: "Connection") -> None:
        self._held_bytes -= connection.held_bytes
        connection.held_bytes = 0
        self._transferring.pop(connection, None)

    def check_deadlines(self) -> None:
        now = time.monotonic()
        for connection in [each for each in self._all if each.deadline <= now]:
            connection.time_out()

    def stop(self) -> None:
        """Closes idle connections. From now on each of the others closes after its answer."""
        self.is_stopping = True
        for connection in list(self._idle):
            connection.close_idle()

    def abort(self) -> None:
        for connection in list(self._all):
            connection.abort()
