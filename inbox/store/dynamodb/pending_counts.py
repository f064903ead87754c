"""What a process has counted and not written down yet."""

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from inbox.domain.stats import MAX_TYPES, OTHER_TYPES, Counts, Span

# A busy inbox's counts are written so often.
_DUE_SECONDS = 5
# A quiet one's wait until they are worth their price, but no longer than this.
_LATEST_SECONDS = 60
# An event that comes or goes costs 2 write units or more, so counting adds a hundredth to them at most.
_WORTH_A_UNIT = 50
# Where DynamoDB does not answer for long, nothing further is counted.
_MAX_WAITING = 100_000
# More than an item has room for: which of them it has already is known only where it is written.
_MAX_TYPES_WAITING = 10 * MAX_TYPES


class Place(NamedTuple):
    """Where counts are kept: an hour or a day of an inbox."""

    tenant_id: str
    inbox: str
    span: Span
    start_ms: int


class Count(NamedTuple):
    """What is counted there: one of the fields of Counts for one type, or something of all types together."""

    name: str
    event_type: str | None


Sums = dict[Count, int]
_Key = tuple[Span, int, str, str | None]
"""A place in an inbox and a count as one plain tuple: it is made for every event."""
Units = Callable[[dict[Place, Sums]], int]
"""How many write units it takes to write them down."""


class _Pending:
    """The counts of one inbox."""

    def __init__(self, tenant_id: str, inbox: str) -> None:
        self.whose = tenant_id, inbox
        self.since = time.monotonic()
        self.moves = 0
        self.types: set[str] = set()
        self.sums: dict[_Key, int] = {}

    def by_place(self) -> dict[Place, Sums]:
        places: defaultdict[Place, Sums] = defaultdict(dict)
        for (span, start_ms, name, event_type), times in self.sums.items():
            places[Place(*self.whose, span, start_ms)][Count(name, event_type)] = times
        return places

    def is_due(self, units: Units) -> bool:
        """Whether it is worth the write units that it costs, or old."""
        age = time.monotonic() - self.since
        if _DUE_SECONDS <= age < _LATEST_SECONDS:
            # Without asking for the price of the many that are worth nothing yet: who counts an event waits meanwhile.
            return self.moves >= _WORTH_A_UNIT and self.moves >= _WORTH_A_UNIT * units(self.by_place())
        return age >= _LATEST_SECONDS


class PendingCounts:
    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: dict[tuple[str, str], _Pending] = {}
        self._held = 0

    def add(
        self, tenant_id: str, inbox: str, event_type: str | None, at_ms: int, counts: Counts, moves: int = 1
    ) -> None:
        with self._mutex:
            pending = self._of(tenant_id, inbox)
            pending.moves += moves
            its_type = bounded_type(event_type or "", pending.types, _MAX_TYPES_WAITING)
            happened = [(name, times) for name, times in zip(Counts._fields, counts, strict=True) if times]
            for span in Span:
                start_ms = span.start_ms(at_ms)
                for name, times in happened:
                    self._add(pending, (span, start_ms, name, its_type), times)

    def add_to_day(self, tenant_id: str, inbox: str, name: str, at_ms: int, times: int) -> None:
        with self._mutex:
            self._add(self._of(tenant_id, inbox), (Span.DAY, Span.DAY.start_ms(at_ms), name, None), times)

    def take(self, units: Units | None) -> list[tuple[Place, Sums]]:
        """What is due at that price, or everything. What is not written down is to be put back."""
        with self._mutex:
            due = [whose for whose, each in self._waiting.items() if units is None or each.is_due(units)]
            taken = [self._waiting.pop(whose) for whose in due]
            self._held -= sum(len(pending.sums) for pending in taken)
        return [of_place for pending in taken for of_place in pending.by_place().items()]

    def put_back(self, unwritten: Iterable[tuple[Place, Sums]]) -> None:
        """To be written as soon as possible."""
        with self._mutex:
            for place, sums in unwritten:
                pending = self._of(place.tenant_id, place.inbox)
                pending.since = -math.inf
                for count, times in sums.items():
                    self._add(pending, (place.span, place.start_ms, *count), times)

    def forget(self, tenant_id: str, inbox: str) -> None:
        with self._mutex:
            forgotten = self._waiting.pop((tenant_id, inbox), None)
            self._held -= len(forgotten.sums) if forgotten else 0

    def _of(self, tenant_id: str, inbox: str) -> _Pending:
        whose = tenant_id, inbox
        if whose in self._waiting:
            return self._waiting[whose]
        pending = _Pending(*whose)
        if self._held < _MAX_WAITING:
            self._waiting[whose] = pending
        return pending

    def _add(self, pending: _Pending, key: _Key, times: int) -> None:
        before = pending.sums.get(key)
        if before is not None:
            pending.sums[key] = before + times
        elif self._held < _MAX_WAITING:
            self._held += 1
            pending.sums[key] = times


def bounded_type(event_type: str, types: set[str], limit: int = MAX_TYPES) -> str:
    """The type, which is one of these from now on, or what stands for those that there is no room for."""
    if event_type not in types and len(types) >= limit:
        return OTHER_TYPES
    types.add(event_type)
    return event_type
