"""What a process has counted and not written down yet."""

import math
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import structlog
from cachetools import LRUCache

from inbox.domain.stats import MAX_TYPES, NO_COUNTS, OTHER_TYPES, Counts, Span
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb.connection import (
    AT_ONCE,
    ERRORS,
    Connection,
    code_of,
    groups_of,
    is_throttled,
    may_have_happened,
    translate_error,
)
from inbox.store.dynamodb.event_states import Entry, State, what_happened
from inbox.store.dynamodb.layout import (
    TENANTS,
    UNDELIVERED_COUNT,
    Item,
    count_attribute,
    counter_expiry,
    counter_key,
    event_type_of,
    inbox_of,
    is_waiting,
    number,
    place_of,
    timestamp_of,
    types_in,
)

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


# Every kilobyte of an item costs a unit. A number takes up to so many bytes beside its name.
_BYTES_A_UNIT = 1024
_BYTES_OF_A_NUMBER = 8
# An expression may have 4 KB.
_MAX_IN_A_CALL = 200
# An item with all the types that it has room for takes 24 KB in memory.
_MAX_KNOWN = 1_000
# A worker that is told to stop has 8 seconds, for its last requests too.
_MAX_SECONDS = 4
# Where DynamoDB does not answer, each try may lose what it would have added.
_PAUSE_SECONDS = 30

_log = structlog.get_logger()


class Counting:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pending = PendingCounts()
        self._flushing = threading.Lock()
        self._paused_until = 0.0
        # Which counts the items have that were written to lately.
        self._known: LRUCache[Place, frozenset[str]] = LRUCache(_MAX_KNOWN)

    def came(self, items: Iterable[Item]) -> None:
        """New events, and new copies of them."""
        # What came together is mostly alike, and to add up sizes takes less than to count each by itself.
        sizes: defaultdict[tuple[str, str, str | None, str, bool], list[str]] = defaultdict(list)
        for item in items:
            waits = is_waiting(item["gsi1sk"]["S"])
            alike = item["tenant_id"]["S"], inbox_of(item), event_type_of(item), item["timestamp"]["N"], waits
            sizes[alike].append(item["payload_bytes"]["N"])
        for (tenant_id, inbox, event_type, timestamp, waits), its_sizes in sizes.items():
            at_ms, number_of = int(timestamp), len(its_sizes)
            counts = Counts(received=number_of, bytes=sum(map(int, its_sizes)))
            self._pending.add(tenant_id, inbox, event_type, at_ms, counts, number_of)
            if waits:
                self._pending.add_to_day(tenant_id, inbox, UNDELIVERED_COUNT, at_ms, number_of)

    def changed(self, seen: Entry, state: State, item: Item, now_ms: int) -> None:
        """The item has been brought from one state into the other."""
        tenant_id, inbox = item["tenant_id"]["S"], inbox_of(item)
        counts = what_happened(seen, state)
        if counts != NO_COUNTS:
            self._pending.add(tenant_id, inbox, seen.event_type, now_ms, counts)
        more = is_waiting(state.status_key) - is_waiting(seen.status_key)
        if more:
            # On the day when it came: both are forgotten at the same time.
            self._pending.add_to_day(tenant_id, inbox, UNDELIVERED_COUNT, timestamp_of(seen.place), more)

    def went(self, items: Iterable[Item]) -> None:
        """Deleted, whatever their states."""
        for item in items:
            if is_waiting(item["gsi1sk"]["S"]):
                at_ms = timestamp_of(place_of(item))
                self._pending.add_to_day(item["tenant_id"]["S"], inbox_of(item), UNDELIVERED_COUNT, at_ms, -1)

    def forget(self, tenant_id: str, inbox: str) -> None:
        """What this process has counted of an inbox that is removed."""
        with self._flushing:
            self._pending.forget(tenant_id, inbox)
            for place in [place for place in self._known if (place.tenant_id, place.inbox) == (tenant_id, inbox)]:
                del self._known[place]

    def flush(self, at_once: bool) -> None:
        """Writes down what is due, or everything, within some seconds. What cannot be written now waits on."""
        with self._flushing:
            if not at_once and time.monotonic() < self._paused_until:
                return
            deadline = time.monotonic() + _MAX_SECONDS
            waiting = deque(self._pending.take(None if at_once else self._units))
            try:
                while waiting and time.monotonic() < deadline:
                    group = [waiting.popleft() for _ in range(min(AT_ONCE, len(waiting)))]
                    if not self._write_group(group):
                        self._paused_until = time.monotonic() + _PAUSE_SECONDS
                        break
            finally:
                self._pending.put_back(waiting)

    def _units(self, places: dict[Place, Sums]) -> int:
        units = 0
        for place, sums in places.items():
            has = self._known.get(place, frozenset())
            names = has.union(count_attribute(*count) for count in _within_bounds(sums, has))
            units += 1 + sum(len(name) + _BYTES_OF_A_NUMBER for name in names) // _BYTES_A_UNIT
        return units

    def _write_group(self, group: list[tuple[Place, Sums]]) -> bool:
        """Whether DynamoDB answers."""
        with_known = [(place, sums, self._known.get(place)) for place, sums in group]
        outcomes = self._connection.at_once(lambda each: self._write(*each), with_known)
        for (place, _), outcome in zip(group, outcomes, strict=True):
            if outcome.has is not None:
                self._known[place] = outcome.has
            if outcome.left:
                self._pending.put_back([(place, outcome.left)])
        return all(outcome.is_answered for outcome in outcomes)

    def _write(self, place: Place, sums: Sums, has: frozenset[str] | None) -> "_Outcome":
        """`has` is what the item is known to have: it has room for so many types, and only it knows which."""
        where = {"TableName": self._connection.table(TENANTS), "Key": counter_key(*place)}
        left, adding = sums, Sums()
        try:
            if has is None:
                has = frozenset(self._connection.call_once("get_item", **where).get("Item", ()))
            left = _within_bounds(sums, has)
            for some in groups_of(_MAX_IN_A_CALL, list(left.items())):
                adding = dict(some)
                # Once: it adds, and would add twice.
                answer = self._connection.call_once("update_item", **where, **_addition(place, adding))
                has, left = frozenset(answer["Attributes"]), _without(left, adding)
        except ERRORS as error:
            outcome = _Outcome.of(error, has, left, adding)
            _log.warning("counts not written", waits_on=bool(outcome.left), error=code_of(error))
            return outcome
        return _Outcome(has, left)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What the item is known to have now, what still waits to be added, and whether DynamoDB answers at all."""

    has: frozenset[str] | None
    left: Sums
    is_answered: bool = True

    @classmethod
    def of(cls, error: Exception, has: frozenset[str] | None, left: Sums, adding: Sums) -> "_Outcome":
        if is_throttled(error):
            return cls(has, left)
        if not isinstance(translate_error(error), StoreUnavailable):
            # It would never work: the item is full.
            return cls(has, {})
        return cls(has, _without(left, adding) if may_have_happened(error) else left, is_answered=False)


def _addition(place: Place, sums: Sums) -> dict[str, Any]:
    names = {f"#{position}": count_attribute(*count) for position, count in enumerate(sums)}
    values = {f":{position}": number(times) for position, times in enumerate(sums.values())}
    pairs = ",".join(f"#{position} :{position}" for position in range(len(sums)))
    return {
        "UpdateExpression": f"SET #ttl = :ttl ADD {pairs}",
        "ExpressionAttributeNames": names | {"#ttl": "ttl"},
        "ExpressionAttributeValues": values | {":ttl": counter_expiry(place.span, place.start_ms)},
        "ReturnValues": "ALL_NEW",
    }


def _within_bounds(sums: Sums, has: frozenset[str]) -> Sums:
    """With the types that the item has no more room for put together."""
    types = types_in(has)
    within: Counter[Count] = Counter()
    for (name, event_type), times in sums.items():
        within[Count(name, None if event_type is None else bounded_type(event_type, types))] += times
    return within


def _without(sums: Sums, others: Sums) -> Sums:
    return {count: times for count, times in sums.items() if count not in others}
