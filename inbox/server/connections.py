"""All connections of a process, and what they may use together."""

import time
from typing import Protocol

HEAD_SECONDS = 10.0
# A client that transfers at this pace never times out. A slower one may be this many seconds behind it.
_BYTES_PER_SECOND = 64 * 1024
TRANSFER_SECONDS = 30.0
PAUSE_SECONDS = 10.0


def head_deadline() -> float:
    return time.monotonic() + HEAD_SECONDS


class Member(Protocol):
    """A connection, as far as the limits are concerned."""

    deadline: float
    held_bytes: int

    def time_out(self) -> None:
        """Called when `deadline` is over."""

    def give_up(self) -> None:
        """Called when the memory that it holds is needed elsewhere."""

    def close_idle(self) -> None: ...

    def abort(self) -> None: ...


class Transfer:
    """How quickly a body arrives, or an answer is read."""

    __slots__ = ("_bytes", "_progress_at", "_started_at")

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
        self._members: set[Member] = set()
        # Both in the order of time.
        self._idle: dict[Member, None] = {}
        self._transferring: dict[Member, None] = {}
        self.is_stopping = False

    def __len__(self) -> int:
        return len(self._members)

    def add(self, member: Member) -> None:
        self._members.add(member)
        self._idle[member] = None

    def remove(self, member: Member) -> None:
        self._members.discard(member)
        self._idle.pop(member, None)
        self.stop_holding(member)

    def make_room(self) -> bool:
        """Returns True if one more connection fits. Closes the one that has been idle for the longest if need be."""
        if len(self._members) >= self._max_connections:
            self.close_longest_idle()
        return len(self._members) < self._max_connections

    def close_longest_idle(self) -> None:
        """Closes a slow transfer if no connection is idle."""
        member = next(iter(self._idle), None) or next(iter(self._transferring), None)
        if member is not None:
            member.abort()
            self.remove(member)

    def mark_idle(self, member: Member) -> None:
        self._idle[member] = None

    def mark_busy(self, member: Member) -> None:
        self._idle.pop(member, None)

    def hold(self, member: Member, held_bytes: int, *, transferring: bool) -> None:
        """Counts bytes of a body or an answer. Above the limit the oldest transfers make room."""
        self._held_bytes += held_bytes - member.held_bytes
        member.held_bytes = held_bytes
        if transferring:
            self._transferring.setdefault(member)
        else:
            self._transferring.pop(member, None)
        while self._held_bytes > self._max_held_bytes and self._transferring:
            oldest = next(iter(self._transferring))
            self.stop_holding(oldest)
            oldest.give_up()

    def stop_holding(self, member: Member) -> None:
        self._held_bytes -= member.held_bytes
        member.held_bytes = 0
        self._transferring.pop(member, None)

    def check_deadlines(self) -> None:
        now = time.monotonic()
        for member in [member for member in self._members if member.deadline <= now]:
            member.time_out()

    def stop(self) -> None:
        """From now on every connection closes after its answer. Idle ones close at once."""
        self.is_stopping = True
        for member in list(self._idle):
            member.close_idle()

    def abort(self) -> None:
        for member in list(self._members):
            member.abort()
