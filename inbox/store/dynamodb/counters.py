"""Statistics: reads the counters, and recomputes them from the events."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from inbox.domain.events import Order, Status
from inbox.domain.stats import Counts, Span, SpanCounts, UndeliveredSummary
from inbox.store.dynamodb import layout, writes
from inbox.store.dynamodb.claimable_events import ClaimableEvents
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.event_states import hold_of, is_stored_only
from inbox.store.dynamodb.items import is_expired
from inbox.store.dynamodb.layout import (
    COUNTERS_PREFIX,
    EVENTS,
    TENANTS,
    UNDELIVERED_COUNT,
    Item,
    number,
    number_in,
    text,
    text_in,
)
from inbox.store.dynamodb.pending_counts import CounterPeriod, EventCounter, limit_event_types
from inbox.store.dynamodb.shards import Shards

# Undelivered events are counted up to this number. Above it, the counters tell how many there are.
_MAX_COUNTED_EXACTLY = 500
_ZERO = number(0)
_COUNTED = "sk, gsi1sk, lost_leases, event_type, payload_bytes, delivered_at, #timestamp, #status, #ttl"

# The counts that can be recomputed from the events.
_RECOUNTED = ("received", "delivered", "bytes", UNDELIVERED_COUNT)


@dataclass(eq=False)
class DynamoDBCounters:
    _connection: Connection
    _shards: Shards
    _claimable: ClaimableEvents
    _counter: EventCounter
    _retention_days: int

    def flush(self, at_once: bool = True) -> None:
        self._counter.flush(at_once)

    def list_counts(self, tenant_id: str, inbox: str, span: Span, since_ms: int) -> list[SpanCounts]:
        return [
            SpanCounts(start_ms, event_type or None, Counts(**counts))
            for start_ms, item in counter_items(self._connection, tenant_id, inbox, span, since_ms)
            for event_type, counts in _by_event_type(item).items()
        ]

    def undelivered(self, tenant_id: str, inbox: str, now_ms: int) -> UndeliveredSummary:
        found = self._claimable.find(tenant_id, inbox, Order.OLDEST, _MAX_COUNTED_EXACTLY, now_ms)
        events = list(islice(found, _MAX_COUNTED_EXACTLY + 1))
        count = len(events)
        if count > _MAX_COUNTED_EXACTLY:
            # Events received before that day have expired, delivered or not.
            since_ms = Span.DAY.start_ms(now_ms - self._retention_days * Span.DAY.ms)
            days = counter_items(self._connection, tenant_id, inbox, Span.DAY, since_ms)
            count = max(count, sum(number_in(item, UNDELIVERED_COUNT) for _, item in days))
        return UndeliveredSummary(count, layout.timestamp_ms_of(events[0].order_key) if events else None)

    def recount(self, tenant_id: str, since_ms: int, now_ms: int) -> int:
        self.flush()
        query = layout.tenant_items_query(tenant_id, layout.prefix_range(COUNTERS_PREFIX))
        found = self._connection.all_items(TENANTS, **query, ConsistentRead=True)
        items = {CounterPeriod(tenant_id, *layout.parse_counter_key(item)): item for item in found}
        # Types with counts of their own keep them, because the counts that cannot be recomputed have the same types.
        types = defaultdict(set, {period: layout.event_types_in(item) for period, item in items.items()})
        recounted = self._count_events(tenant_id, types, now_ms)
        first_ms = {span: max(since_ms, now_ms - span.kept_ms) for span in Span}
        changes = 0
        for period in sorted(recounted.keys() | items.keys()):
            if period.start_ms < first_ms[period.span]:
                continue
            before = {name: value for name, value in items.get(period, {}).items() if name not in ("PK", "SK", "ttl")}
            kept = {
                name: value for name, value in before.items() if layout.parse_count_attribute(name)[0] not in _RECOUNTED
            }
            after = kept | {name: number(count) for name, count in recounted.get(period, Counter()).items() if count}
            changed = sum(before.get(name, _ZERO) != after.get(name, _ZERO) for name in before.keys() | after.keys())
            if changed:
                ttl = {"ttl": layout.counter_ttl(period.span, period.start_ms)}
                self._connection.write(
                    writes.put(self._connection.table(TENANTS), {**layout.counter_key(*period), **after, **ttl})
                )
            changes += changed
        return changes

    def _count_events(
        self, tenant_id: str, types: defaultdict[CounterPeriod, set[str]], now_ms: int
    ) -> dict[CounterPeriod, Counter[str]]:
        counted: defaultdict[CounterPeriod, Counter[str]] = defaultdict(Counter)

        def add(item: Item, at_ms: int, **counts: int) -> None:
            for span in Span:
                period = CounterPeriod(tenant_id, layout.inbox_of(item), span, span.start_ms(at_ms))
                event_type = limit_event_types(text_in(item, "event_type") or "", types[period])
                counted[period].update(
                    {layout.count_attribute(name, event_type): count for name, count in counts.items()}
                )

        for item in self._events(tenant_id):
            if layout.is_payload(item) or is_expired(item, now_ms):
                continue
            timestamp_ms = number_in(item, "timestamp")
            add(item, timestamp_ms, received=1, bytes=number_in(item, "payload_bytes"))
            if item["status"]["S"] == Status.DELIVERED and not is_stored_only(item):
                add(item, number_in(item, "delivered_at"), delivered=1)
            if layout.is_undelivered_key(item["gsi1sk"]["S"]) and hold_of(item) is None:
                day = CounterPeriod(tenant_id, layout.inbox_of(item), Span.DAY, Span.DAY.start_ms(timestamp_ms))
                counted[day][UNDELIVERED_COUNT] += 1
        return counted

    def _events(self, tenant_id: str) -> Iterator[Item]:
        for partition in self._shards.get(tenant_id).table_partitions():
            yield from self._connection.all_items(
                EVENTS,
                KeyConditionExpression="pk = :partition",
                ProjectionExpression=_COUNTED,
                ExpressionAttributeNames={"#timestamp": "timestamp", "#status": "status", "#ttl": "ttl"},
                ExpressionAttributeValues={":partition": text(partition)},
                ConsistentRead=True,
            )


def _by_event_type(item: Item) -> dict[str, dict[str, int]]:
    types: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for attribute in item:
        name, event_type = layout.parse_count_attribute(attribute)
        # A later release may have more counts.
        if event_type is not None and name in Counts._fields:
            types[event_type][name] = number_in(item, attribute)
    return types


def counter_items(
    connection: Connection, tenant_id: str, inbox: str, span: Span, since_ms: int
) -> Iterator[tuple[int, Item]]:
    """Yields the start and the item of every hour or day that starts at or after `since_ms`."""
    query = layout.tenant_items_query(tenant_id, layout.counter_range(inbox, span, since_ms))
    for item in connection.query_items(TENANTS, **query):
        item_inbox, _, start_ms = layout.parse_counter_key(item)
        if item_inbox == inbox and start_ms >= since_ms:
            yield start_ms, item


def delete_counters(connection: Connection, tenant_id: str, inbox: str) -> None:
    """Deletes the counts of an inbox. Another process may still write those that it holds in memory."""
    for span in Span:
        items = [item for _, item in counter_items(connection, tenant_id, inbox, span, 0)]
        deletes = [writes.delete(connection.table(TENANTS), {"PK": item["PK"], "SK": item["SK"]}) for item in items]
        connection.map_parallel(connection.write, deletes)
