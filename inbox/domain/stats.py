"""What becomes of events, in numbers: by inbox and event type, for each hour and day in UTC. Pure."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from operator import add
from typing import NamedTuple

MAX_TYPES = 50
"""So many types are counted each by itself in an hour or a day, and the further ones together."""
OTHER_TYPES = "*"
"""Stands for them: no event can have it for its type."""

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


class Span(StrEnum):
    """Its length, and how long its counts are kept: of days for a year and somewhat more, to compare."""

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
    """How often each thing happened. `bytes` are those of the payloads received."""

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


def received(payload_bytes: int) -> Counts:
    return Counts(received=1, bytes=payload_bytes)


class CountChanges:
    """What is being added up, for each inbox and type, and how many more or fewer of an inbox can be had."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str | None], Counts] = {}
        self.undelivered: Counter[str] = Counter()

    def add(self, inbox: str, event_type: str | None, counts: Counts, undelivered: int = 0) -> None:
        before = self.counts.get((inbox, event_type))
        self.counts[inbox, event_type] = counts if before is None else before.plus(counts)
        self.undelivered[inbox] += undelivered


class SpanCounts(NamedTuple):
    """What happened to events of one type in the hour or day that begins then."""

    start_ms: int
    event_type: str | None
    counts: Counts


@dataclass(frozen=True, slots=True)
class UndeliveredSummary:
    """How many events of an inbox a claim could take, and when the oldest of them came."""

    count: int
    oldest_ms: int | None
