"""The counters in DynamoDB: read, and made again from the events."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice

from inbox.domain.events import Order, Status
from inbox.domain.stats import Counts, Span, SpanCounts, UndeliveredSummary
from inbox.store.dynamodb.claims import Availability
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.event_states import is_kept_only, number_in
from inbox.store.dynamodb.items import is_expired
from inbox.store.dynamodb.layout import (
    COUNTERS_OF_TENANT,
    EVENTS,
    TENANTS,
    UNDELIVERED_COUNT,
    Item,
    count_attribute,
    counted_in,
    counter_expiry,
    counter_key,
    counter_of,
    counter_range,
    event_type_of,
    inbox_of,
    is_waiting,
    number,
    tenant_key,
    text,
    timestamp_of,
    types_in,
)
from inbox.store.dynamodb.pending_counts import Counting, Place, bounded_type
from inbox.store.dynamodb.shards import Shards


class CounterItems:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._table = connection.table(TENANTS)

    def since(self, tenant_id: str, inbox: str, span: Span, since_ms: int) -> Iterator[tuple[int, Item]]:
        """Those of the hours or days that begin then or later, each with its beginning."""
        first, last = counter_range(inbox, span, since_ms)
        values = {":tenant": tenant_key(tenant_id)["PK"], ":first": text(first), ":last": text(last)}
        for item in self._connection.walk(
            TableName=self._table,
            KeyConditionExpression="PK = :tenant AND SK BETWEEN :first AND :last",
            ExpressionAttributeValues=values,
        ):
            its_inbox, _, start_ms = counter_of(item)
            if its_inbox == inbox and start_ms >= since_ms:
                yield start_ms, item

    def of_tenant(self, tenant_id: str) -> Iterator[Item]:
        return self._connection.all_pages(
            "query",
            TableName=self._table,
            KeyConditionExpression="PK = :tenant AND begins_with(SK, :counters)",
            ExpressionAttributeValues={":tenant": tenant_key(tenant_id)["PK"], ":counters": text(COUNTERS_OF_TENANT)},
            ConsistentRead=True,
        )

    def put(self, item: Item) -> None:
        self._connection.call("put_item", TableName=self._table, Item=item)

    def forget(self, tenant_id: str, inbox: str) -> None:
        """What a process has counted and not written down may still come."""
        for span in Span:
            keys = [{"PK": item["PK"], "SK": item["SK"]} for _, item in self.since(tenant_id, inbox, span, 0)]
            self._connection.at_once(self._delete, keys)

    def _delete(self, key: Item) -> None:
        self._connection.call("delete_item", TableName=self._table, Key=key)


# As many are looked at. Where there are more, their number is what was counted.
_EXACT_UP_TO = 500
_ZERO = number(0)

_OF_RECOUNT = ("received", "delivered", "bytes", UNDELIVERED_COUNT)
"""What events tell by themselves."""


class DynamoDBCounters:
    def __init__(
        self,
        connection: Connection,
        shards: Shards,
        availability: Availability,
        counting: Counting,
        retention_days: int,
    ) -> None:
        self._connection = connection
        self._items = CounterItems(connection)
        self._shards = shards
        self._availability = availability
        self._counting = counting
        self._retention_days = retention_days

    def list_counts(self, tenant_id: str, inbox: str, span: Span, since_ms: int) -> list[SpanCounts]:
        return [
            SpanCounts(start_ms, event_type or None, Counts(**counts))
            for start_ms, item in self._items.since(tenant_id, inbox, span, since_ms)
            for event_type, counts in _by_type(item).items()
        ]

    def undelivered(self, tenant_id: str, inbox: str, now_ms: int) -> UndeliveredSummary:
        entries = self._availability.to_show(tenant_id, inbox, Order.OLDEST, _EXACT_UP_TO, now_ms)
        seen = list(islice(entries, _EXACT_UP_TO + 1))
        count = len(seen)
        if count > _EXACT_UP_TO:
            # What came before is past its time by now, and with it whatever of it was never taken.
            since_ms = Span.DAY.start_ms(now_ms - self._retention_days * Span.DAY.ms)
            days = self._items.since(tenant_id, inbox, Span.DAY, since_ms)
            count = max(count, sum(number_in(item, UNDELIVERED_COUNT) for _, item in days))
        return UndeliveredSummary(count, timestamp_of(seen[0].place) if seen else None)

    def flush(self, at_once: bool = True) -> None:
        self._counting.flush(at_once)

    def recount(self, tenant_id: str, since_ms: int, now_ms: int) -> int:
        self.flush()
        there = {Place(tenant_id, *counter_of(item)): item for item in self._items.of_tenant(tenant_id)}
        # Types that have counts of their own keep them: what events do not tell of stands there too.
        types = defaultdict(set, {place: types_in(item) for place, item in there.items()})
        told = self._told_by_events(tenant_id, types, now_ms)
        since = {span: max(since_ms, now_ms - span.kept_ms) for span in Span}
        changed = 0
        for place in sorted(told.keys() | there.keys()):
            if place.start_ms < since[place.span]:
                continue
            before = {name: value for name, value in there.get(place, {}).items() if name not in ("PK", "SK", "ttl")}
            kept = {name: value for name, value in before.items() if counted_in(name)[0] not in _OF_RECOUNT}
            after = kept | {name: number(count) for name, count in told.get(place, Counter()).items() if count}
            others = sum(before.get(name, _ZERO) != after.get(name, _ZERO) for name in before.keys() | after.keys())
            if others:
                self._items.put({**counter_key(*place), **after, "ttl": counter_expiry(place.span, place.start_ms)})
            changed += others
        return changed

    def _told_by_events(
        self, tenant_id: str, types: defaultdict[Place, set[str]], now_ms: int
    ) -> dict[Place, Counter[str]]:
        told: defaultdict[Place, Counter[str]] = defaultdict(Counter)

        def add(item: Item, at_ms: int, **counts: int) -> None:
            for span in Span:
                place = Place(tenant_id, inbox_of(item), span, span.start_ms(at_ms))
                its_type = bounded_type(event_type_of(item) or "", types[place])
                told[place].update({count_attribute(name, its_type): count for name, count in counts.items()})

        for item in self._events(tenant_id):
            if is_expired(item, now_ms):
                continue
            timestamp_ms = number_in(item, "timestamp")
            add(item, timestamp_ms, received=1, bytes=number_in(item, "payload_bytes"))
            if item["status"]["S"] == Status.DELIVERED and not is_kept_only(item):
                add(item, number_in(item, "delivered_at"), delivered=1)
            if is_waiting(item["gsi1sk"]["S"]):
                day = Place(tenant_id, inbox_of(item), Span.DAY, Span.DAY.start_ms(timestamp_ms))
                told[day][UNDELIVERED_COUNT] += 1
        return told

    def _events(self, tenant_id: str) -> Iterator[Item]:
        for partition in self._shards.of(tenant_id).homes():
            yield from self._connection.all_pages(
                "query",
                TableName=self._connection.table(EVENTS),
                KeyConditionExpression="pk = :partition",
                ProjectionExpression="sk, gsi1sk, event_type, payload_bytes, delivered_at, #timestamp, #status, #ttl",
                ExpressionAttributeNames={"#timestamp": "timestamp", "#status": "status", "#ttl": "ttl"},
                ExpressionAttributeValues={":partition": text(partition)},
                ConsistentRead=True,
            )


def _by_type(item: Item) -> dict[str, dict[str, int]]:
    types: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for attribute in item:
        name, event_type = counted_in(attribute)
        # A newer release may count more than this one.
        if event_type is not None and name in Counts._fields:
            types[event_type][name] = number_in(item, attribute)
    return types
