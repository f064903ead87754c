"""All connections of a process, and their shared limits."""

import time
from enum import Enum, auto
from typing import TYPE_CHECKING

from inbox.errors import Overloaded

if TYPE_CHECKING:
    from inbox.server.connection import Connection

HEAD_SECONDS = 10.0
# Clients that transfer at this rate never time out.
_BYTES_PER_SECOND = 64 * 1024
# How far a slower client may fall behind that rate, and how long it may pause.
TRANSFER_SECONDS = 30.0
PAUSE_SECONDS = 10.0


class State(Enum):
    """What a connection is doing. At the limit, connections are closed in this order, except RUNNING ones."""

    IDLE = auto()
    RECEIVING = auto()
    WAITING = auto()
    """The connection's long poll waits."""
    SENDING = auto()
    RUNNING = auto()


class Transfer:
    """Tracks the progress of a request or a response, and computes its deadline."""

    def __init__(self) -> None:
        self._started_at = self._progress_at = time.monotonic()
        self._bytes = 0

    def add(self, size: int) -> None:
        self._bytes += size
        self._progress_at = time.monotonic()

    @property
    def deadline(self) -> float:
        rate_deadline = self._started_at + TRANSFER_SECONDS + self._bytes / _BYTES_PER_SECOND
        return min(rate_deadline, self._progress_at + PAUSE_SECONDS)


class Connections:
    def __init__(self, max_connections: int, max_held_bytes: int) -> None:
        self._max_connections = max_connections
        self._max_held_bytes = max_held_bytes
        self._held_bytes = 0
        # In each state, the connection that entered it first comes first.
        self._by_state: dict[State, dict[Connection, None]] = {state: {} for state in State}
        self.is_stopping = False

    def __len__(self) -> int:
        return sum(map(len, self._by_state.values()))

    def add(self, connection: "Connection") -> bool:
        """Adds a connection; at the limit, closes another one. Returns False if all others run the app."""
        if len(self) >= self._max_connections:
            oldest = self._oldest(State.IDLE, State.RECEIVING, State.WAITING, State.SENDING)
            if oldest is None:
                return False
            oldest.abort()
            self.remove(oldest)
        self._by_state[connection.state][connection] = None
        return True

    def remove(self, connection: "Connection") -> None:
        self._by_state[connection.state].pop(connection, None)
        self._hold(connection, 0)

    def update(self, connection: "Connection", state: State, held_bytes: int = 0) -> None:
        """Sets the state of a connection, and how many bytes of requests and responses it holds in memory.

        If all connections together exceed the limit, cancels the oldest transfers. Raises Overloaded if the
        connection's own transfer is among them, or there are none left.
        """
        if state is not connection.state:
            self._move(connection, state)
        self._hold(connection, held_bytes)
        while held_bytes and self._held_bytes > self._max_held_bytes:
            oldest = self._oldest(State.RECEIVING, State.SENDING) or connection
            self._hold(oldest, 0)
            if oldest is connection:
                raise Overloaded
            self._move(oldest, State.RUNNING)
            oldest.interrupt(Overloaded())

    def check_deadlines(self) -> None:
        now = time.monotonic()
        for connection in [each for each in self._all() if each.deadline <= now]:
            connection.interrupt(TimeoutError())

    def stop(self) -> None:
        """Closes idle connections. From now on the others close after their next response."""
        self.is_stopping = True
        for connection in list(self._by_state[State.IDLE]):
            connection.wake()

    def abort(self) -> None:
        for connection in self._all():
            connection.abort()

    def _all(self) -> list["Connection"]:
        return [connection for group in self._by_state.values() for connection in group]

    def _oldest(self, *states: State) -> "Connection | None":
        """Returns the oldest connection in the first of these states that has any."""
        return next((connection for state in states for connection in self._by_state[state]), None)

    def _move(self, connection: "Connection", state: State) -> None:
        # It is missing if it was closed at the limit.
        self._by_state[connection.state].pop(connection, None)
        connection.state = state
        self._by_state[state][connection] = None

    def _hold(self, connection: "Connection", held_bytes: int) -> None:
        self._held_bytes += held_bytes - connection.held_bytes
        connection.held_bytes = held_bytes
