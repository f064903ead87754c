"""Counts what happens to events: adds up in memory, and writes a little later.

A write for each event would cost nearly as much as the event itself. Counts that are not written yet are lost if the
process is killed.
"""

import math
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import structlog
from cachetools import LRUCache

from inbox.domain.events import InboxKey
from inbox.domain.stats import MAX_TYPES, NO_COUNTS, OTHER_TYPES, Counts, Span
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.connection import (
    AWS_ERRORS,
    MAX_PARALLEL_CALLS,
    Connection,
    error_code,
    groups_of,
    is_throttled,
    may_have_succeeded,
    translate_error,
)
from inbox.store.dynamodb.event_states import hold_of
from inbox.store.dynamodb.event_updates import EventUpdate
from inbox.store.dynamodb.layout import TENANTS, UNDELIVERED_COUNT, Item, number, text_in

_MIN_AGE_SECONDS = 5
# A quiet inbox's counts wait until they are worth their price, but no longer than this.
_MAX_AGE_SECONDS = 60
# An event that is received or delivered costs 2 write units or more, so counting adds 1 % to the price or less.
_MIN_EVENTS_PER_UNIT = 50
# If DynamoDB is unavailable for long, further counts are dropped.
_MAX_PENDING = 100_000
# More than an item has room for: which types an item has is only known when it is written.
_MAX_PENDING_TYPES = 10 * MAX_TYPES

_BYTES_PER_UNIT = 1024
_BYTES_PER_NUMBER = 8
# The limit of an expression is 4 KB.
_MAX_COUNTS_PER_UPDATE = 200
# An item with the maximum number of types takes 24 KB in memory.
_MAX_CACHED_ITEMS = 1_000
# A worker that is told to stop has 8 seconds, in which it also finishes its last requests.
_FLUSH_TIMEOUT_SECONDS = 4
# While DynamoDB is unavailable, each try may lose what it would have added.
_PAUSE_SECONDS = 30

_log = structlog.get_logger()


class CounterPeriod(NamedTuple):
    """An hour or a day of an inbox: what one item counts."""

    tenant_id: str
    inbox: str
    span: Span
    start_ms: int


CountName = tuple[str, str | None]
"""A field of Counts and an event type, or UNDELIVERED_COUNT, which is not kept by type, and None."""
CountSums = dict[CountName, int]
PriceInUnits = Callable[[dict[CounterPeriod, CountSums]], int]
"""Returns the write units that these sums cost."""


class _InboxCounts:
    def __init__(self) -> None:
        self.since = time.monotonic()
        self.events = 0
        self.types: set[str] = set()
        self.periods: dict[CounterPeriod, CountSums] = {}

    @property
    def size(self) -> int:
        return sum(map(len, self.periods.values()))

    def is_due(self, price: PriceInUnits) -> bool:
        """Returns True if the counts are worth the write units that they cost, or old."""
        age_seconds = time.monotonic() - self.since
        if _MIN_AGE_SECONDS <= age_seconds < _MAX_AGE_SECONDS:
            # Most are not worth a single unit. Their price is not computed: threads that count wait meanwhile.
            is_worth_a_unit = self.events >= _MIN_EVENTS_PER_UNIT
            return is_worth_a_unit and self.events >= _MIN_EVENTS_PER_UNIT * price(self.periods)
        return age_seconds >= _MAX_AGE_SECONDS


class PendingCounts:
    """Thread-safe, bounded sums that are not written yet."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._inboxes: dict[InboxKey, _InboxCounts] = {}
        self._size = 0

    def add(self, inbox_key: InboxKey, event_type: str | None, at_ms: int, counts: Counts, events: int = 1) -> None:
        with self._mutex:
            pending = self._get_or_create(inbox_key)
            pending.events += events
            bounded_type = limit_event_types(event_type or "", pending.types, _MAX_PENDING_TYPES)
            nonzero = [(name, value) for name, value in zip(Counts._fields, counts, strict=True) if value]
            for span in Span:
                period = CounterPeriod(*inbox_key, span, span.start_ms(at_ms))
                for name, value in nonzero:
                    self._add(pending, period, (name, bounded_type), value)

    def add_undelivered(self, inbox_key: InboxKey, received_ms: int, value: int) -> None:
        """Counts on the day when the event was received: the count expires together with the event."""
        with self._mutex:
            day = CounterPeriod(*inbox_key, Span.DAY, Span.DAY.start_ms(received_ms))
            self._add(self._get_or_create(inbox_key), day, (UNDELIVERED_COUNT, None), value)

    def pop_due(self, price: PriceInUnits | None) -> list[tuple[CounterPeriod, CountSums]]:
        """Removes and returns what is due at that price, or everything if it is None."""
        with self._mutex:
            due = [key for key, pending in self._inboxes.items() if price is None or pending.is_due(price)]
            popped = [self._inboxes.pop(key) for key in due]
            self._size -= sum(pending.size for pending in popped)
        return [period for pending in popped for period in pending.periods.items()]

    def put_back(self, unwritten: Iterable[tuple[CounterPeriod, CountSums]]) -> None:
        """Adds sums that could not be written. They are due at once."""
        with self._mutex:
            for period, sums in unwritten:
                pending = self._get_or_create((period.tenant_id, period.inbox))
                pending.since = -math.inf
                for count, value in sums.items():
                    self._add(pending, period, count, value)

    def discard(self, inbox_key: InboxKey) -> None:
        with self._mutex:
            discarded = self._inboxes.pop(inbox_key, None)
            self._size -= discarded.size if discarded else 0

    def _get_or_create(self, inbox_key: InboxKey) -> _InboxCounts:
        if inbox_key in self._inboxes:
            return self._inboxes[inbox_key]
        pending = _InboxCounts()
        if self._size < _MAX_PENDING:
            self._inboxes[inbox_key] = pending
        return pending

    def _add(self, pending: _InboxCounts, period: CounterPeriod, count: CountName, value: int) -> None:
        sums = pending.periods.get(period, {})
        if count in sums:
            sums[count] += value
        elif self._size < _MAX_PENDING:
            self._size += 1
            pending.periods.setdefault(period, {})[count] = value


def limit_event_types(event_type: str, types: set[str], limit: int = MAX_TYPES) -> str:
    """Adds the type to `types` and returns it, or returns OTHER_TYPES if there is no room for another."""
    if event_type not in types and len(types) >= limit:
        return OTHER_TYPES
    types.add(event_type)
    return event_type


class EventCounter:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pending = PendingCounts()
        self._flushing = threading.Lock()
        self._cache_mutex = threading.Lock()
        self._paused_until = 0.0
        # Attributes of the items that were written lately: how many types an item has room for depends on them.
        self._attributes: LRUCache[CounterPeriod, frozenset[str]] = LRUCache(_MAX_CACHED_ITEMS)

    def count_received(self, items: Iterable[Item]) -> None:
        """Counts new events, and new copies of them."""
        # Items of a batch are mostly alike: adding up their sizes is cheaper than counting each one.
        sizes: defaultdict[tuple[str, str, str | None, str, bool], list[str]] = defaultdict(list)
        for item in items:
            is_undelivered = layout.is_undelivered_key(item["gsi1sk"]["S"])
            group = (
                layout.tenant_of(item),
                layout.inbox_of(item),
                text_in(item, "event_type"),
                item["timestamp"]["N"],
                is_undelivered,
            )
            sizes[group].append(item["payload_bytes"]["N"])
        for (tenant_id, inbox, event_type, timestamp, is_undelivered), group_sizes in sizes.items():
            at_ms, events = int(timestamp), len(group_sizes)
            counts = Counts(received=events, bytes=sum(map(int, group_sizes)))
            self._pending.add((tenant_id, inbox), event_type, at_ms, counts, events)
            if is_undelivered:
                self._pending.add_undelivered((tenant_id, inbox), at_ms, events)

    def count_update(self, update: EventUpdate, item: Item, now_ms: int) -> None:
        inbox_key = layout.tenant_of(item), layout.inbox_of(item)
        event, counts = update.event, update.counts()
        if counts != NO_COUNTS:
            self._pending.add(inbox_key, event.event_type, now_ms, counts)
        difference = update.state.is_waiting - event.is_waiting
        if difference:
            self._pending.add_undelivered(inbox_key, layout.timestamp_ms_of(event.order_key), difference)

    def count_deleted(self, items: Iterable[Item]) -> None:
        for item in items:
            if layout.is_undelivered_key(item["gsi1sk"]["S"]) and hold_of(item) is None:
                inbox_key = layout.tenant_of(item), layout.inbox_of(item)
                self._pending.add_undelivered(inbox_key, layout.timestamp_ms_of(layout.order_key_of(item)), -1)

    def discard(self, tenant_id: str, inbox: str) -> None:
        """Forgets what this process has counted for an inbox that is deleted."""
        with self._flushing:
            self._pending.discard((tenant_id, inbox))
            for period in list(self._attributes):
                if (period.tenant_id, period.inbox) == (tenant_id, inbox):
                    del self._attributes[period]

    def flush(self, at_once: bool = True) -> None:
        """Writes what is due, or everything, within some seconds. What cannot be written remains pending."""
        with self._flushing:
            if not at_once and time.monotonic() < self._paused_until:
                return
            deadline = time.monotonic() + _FLUSH_TIMEOUT_SECONDS
            remaining = deque(self._pending.pop_due(None if at_once else self._price))
            try:
                while remaining and time.monotonic() < deadline:
                    group = [remaining.popleft() for _ in range(min(MAX_PARALLEL_CALLS, len(remaining)))]
                    if not all(self._connection.map_parallel(self._write, group)):
                        self._paused_until = time.monotonic() + _PAUSE_SECONDS
                        break
            finally:
                self._pending.put_back(remaining)

    def _price(self, periods: dict[CounterPeriod, CountSums]) -> int:
        units = 0
        for period, sums in periods.items():
            known = self._attributes.get(period, frozenset())
            names = known.union(layout.count_attribute(*count) for count in _merge_other_types(sums, known))
            units += 1 + sum(len(name) + _BYTES_PER_NUMBER for name in names) // _BYTES_PER_UNIT
        return units

    def _write(self, pending: tuple[CounterPeriod, CountSums]) -> bool:
        """Returns False if DynamoDB does not respond."""
        period, sums = pending
        item = {"TableName": self._connection.table(TENANTS), "Key": layout.counter_key(*period)}
        with self._cache_mutex:
            attributes = self._attributes.get(period)
        unwritten, adding, is_available = sums, CountSums(), True
        try:
            if attributes is None:
                attributes = frozenset(self._connection.call_once("get_item", **item).get("Item", ()))
            unwritten = _merge_other_types(sums, attributes)
            for group in groups_of(_MAX_COUNTS_PER_UPDATE, list(unwritten.items())):
                adding = dict(group)
                # Without retries: it adds, and would add twice.
                response = self._connection.call_once("update_item", **item, **_addition(period, adding))
                attributes, unwritten = frozenset(response["Attributes"]), _without(unwritten, adding)
        except AWS_ERRORS as error:
            if not isinstance(translate_error(error), StoreUnavailable):
                # The item is full: repeating would never help.
                unwritten = {}
            elif not is_throttled(error):
                is_available = False
                unwritten = _without(unwritten, adding) if may_have_succeeded(error) else unwritten
            _log.warning("counts not written", will_retry=bool(unwritten), error=error_code(error))
        if attributes is not None:
            with self._cache_mutex:
                self._attributes[period] = attributes
        if unwritten:
            self._pending.put_back([(period, unwritten)])
        return is_available


def _addition(period: CounterPeriod, sums: CountSums) -> dict[str, Any]:
    names = {f"#{position}": layout.count_attribute(*count) for position, count in enumerate(sums)}
    values = {f":{position}": number(value) for position, value in enumerate(sums.values())}
    pairs = ",".join(f"#{position} :{position}" for position in range(len(sums)))
    return {
        "UpdateExpression": f"SET #ttl = :ttl ADD {pairs}",
        "ExpressionAttributeNames": names | {"#ttl": "ttl"},
        "ExpressionAttributeValues": values | {":ttl": layout.counter_ttl(period.span, period.start_ms)},
        "ReturnValues": "ALL_NEW",
    }


def _merge_other_types(sums: CountSums, attributes: frozenset[str]) -> CountSums:
    """Returns the sums, with those of types that the item has no room for added up as OTHER_TYPES."""
    types = layout.event_types_in(attributes)
    merged: Counter[CountName] = Counter()
    for (name, event_type), value in sums.items():
        merged[name, None if event_type is None else limit_event_types(event_type, types)] += value
    return merged


def _without(sums: CountSums, others: CountSums) -> CountSums:
    return {count: value for count, value in sums.items() if count not in others}
