"""Statistics: counts by inbox and event type, for each hour and day in UTC. Pure."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from operator import add
from typing import NamedTuple

MAX_TYPES = 50
"""Event types counted separately in an hour or a day. Others are counted together as OTHER_TYPES."""
OTHER_TYPES = "*"  # Not a valid event type.

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


class Span(StrEnum):
    """An hour or a day, with its length and how long its counts are kept."""

    HOUR = "hour", _HOUR_MS, 3 * _DAY_MS
    DAY = "day", _DAY_MS, 400 * _DAY_MS

    ms: int
    kept_ms: int

    def __new__(cls, value: str, ms: int, kept_ms: int) -> "Span":
        span = str.__new__(cls, value)
        span._value_, span.ms, span.kept_ms = value, ms, kept_ms
        return span

    def start_ms(self, at_ms: int) -> int:
        return at_ms - at_ms % self.ms


class Counts(NamedTuple):
    """`bytes` is the size of the received payloads."""

    received: int = 0
    delivered: int = 0
    leased: int = 0
    dead: int = 0
    replayed: int = 0
    bytes: int = 0

    def plus(self, other: "Counts") -> "Counts":
        return Counts(*map(add, self, other))

    def times(self, number: int) -> "Counts":
        return Counts(*(count * number for count in self))


NO_COUNTS = Counts()
DELIVERED = Counts(delivered=1)
LEASED = Counts(leased=1)
DEAD = Counts(dead=1)
REPLAYED = Counts(replayed=1)


class CountChanges:
    """Changes to the counts of each inbox and type, and to the number of undelivered events of each inbox."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str | None], Counts] = {}
        self.undelivered: Counter[str] = Counter()

    def add(self, inbox: str, event_type: str | None, counts: Counts, undelivered: int = 0) -> None:
        before = self.counts.get((inbox, event_type))
        self.counts[inbox, event_type] = counts if before is None else before.plus(counts)
        self.undelivered[inbox] += undelivered


class SpanCounts(NamedTuple):
    """The counts of one event type in the hour or day that starts at `start_ms`."""

    start_ms: int
    event_type: str | None
    counts: Counts


@dataclass(frozen=True, slots=True)
class UndeliveredSummary:
    """The number of events that a claim could return, and the timestamp of the oldest."""

    count: int
    oldest_ms: int | None
