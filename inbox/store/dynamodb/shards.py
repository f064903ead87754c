"""The partitions that a tenant's events are spread over.

One partition of the index accepts about 1,000 writes a second. A tenant that sends more has several: the event's ID
determines its partition. After a change, reads merge the partitions of all shardings, until nothing is left in those
of an earlier one.

An event with an idempotency key is looked up by its ID alone. Its partition of the table therefore comes from a fixed
number of them, which later changes keep. Only its partition of the index depends on the number of shards.
"""

import threading
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from typing import Any, NamedTuple

from cachetools import TTLCache, cachedmethod

from inbox.domain.events import DEFAULT_INBOX
from inbox.domain.stats import Span
from inbox.errors import NotFound, StoreUnavailable
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.connection import MAX_TRIES, Connection, back_off
from inbox.store.dynamodb.layout import (
    EVENT_TYPE_INDEX,
    EVENTS,
    INBOX_ITEMS,
    STATUS_INDEX,
    TENANTS,
    UNSHARDED,
    Item,
    number,
    number_in,
    text,
)
from inbox.store.dynamodb.schema import SchemaVersion

_MAX_CACHED_TENANTS = 10_000
_CACHE_SECONDS = 20
NOTICE_MS = 60_000
"""Delay before a new sharding takes effect. By then the caches of all processes have expired, so that no process
writes to a partition that another does not read yet."""
KEYED_PARTITIONS = 16
"""Later changes of the number of shards keep this number."""
_MIN_SCHEMA_VERSION = 2
"""Of tables that no process of release 0.1.0 uses."""
CHECK_INTERVAL_MS = 3_600_000
"""How often a process checks if anything is left in a tenant's earlier shardings, and how long ago these ended at
least. No call that writes to them takes as long."""


class Place(NamedTuple):
    """The suffixes of an event's partitions."""

    table_shard: str
    index_shard: str


@dataclass(frozen=True, slots=True)
class Sharding:
    """From `since_ms` until the next sharding takes effect, new events are spread over `count` shards.

    Shardings with different numbers of shards have different `series`, so that no partition belongs to both. None is
    that of earlier releases. `keyed_partitions` is 0 if all events with idempotency keys are in the first partition.
    """

    count: int
    since_ms: int
    keyed_partitions: int = 0
    series: int | None = 0

    @property
    def spread(self) -> tuple[int, int | None]:
        """Determines the shard of each event."""
        return (self.count, self.series) if self.count > 1 else (1, 0)

    def shard_for(self, event_id: str) -> str:
        return self._suffix(layout.shard_number(event_id, self.count))

    def keyed_shard_for(self, event_id: str) -> str:
        if self.keyed_partitions == 0:
            return UNSHARDED
        return layout.keyed_suffix(layout.shard_number(event_id, self.keyed_partitions))

    def shards(self) -> list[str]:
        return [self._suffix(each) for each in range(self.count)]

    def keyed_shards(self) -> list[str]:
        return [layout.keyed_suffix(each) for each in range(self.keyed_partitions)] or [UNSHARDED]

    def places_without(self, others: Sequence["Sharding"]) -> tuple[list[str], list[str]]:
        """Returns the shards of the table and of the index that have to be empty if only `others` are read."""
        is_spread_kept = any(other.spread == self.spread for other in others)
        are_keyed_kept = any(other.keyed_partitions == self.keyed_partitions for other in others)
        shards = [] if is_spread_kept else self.shards()
        if self.keyed_partitions:
            # The partitions of keyed events are also those of later shardings, so only the index can show that no
            # event is left.
            return shards + ([] if are_keyed_kept else self.keyed_shards()), shards
        return shards + ([] if is_spread_kept and are_keyed_kept else self.keyed_shards()), []

    def to_attribute(self) -> dict[str, Any]:
        # Releases that do not know `partitions` read `count` alone. With 1 they write to the first partition, which
        # every release reads, and not to partitions with the old suffix, which this sharding does not have.
        attributes = {"count": number(1), "partitions": number(self.count), "since": number(self.since_ms)}
        optional = {"keyed": self.keyed_partitions, "series": self.series}
        return {"M": attributes | {name: number(value) for name, value in optional.items() if value}}

    def _suffix(self, shard: int) -> str:
        if self.count == 1:
            return UNSHARDED
        return layout.old_shard_suffix(shard) if self.series is None else layout.shard_suffix(shard, self.series)


_FIRST = Sharding(1, 0)
"""The sharding of a tenant that was not sharded, and of every tenant before it was."""


@dataclass(frozen=True, slots=True)
class TenantShards:
    """The shardings that a tenant's events may be in, the latest last."""

    tenant_id: str
    shardings: tuple[Sharding, ...] = (_FIRST,)

    def place_for_new(self, event_id: str, now_ms: int, *, keyed: bool) -> Place:
        sharding = [each for each in self.shardings if each.since_ms <= now_ms][-1]
        shard = sharding.shard_for(event_id)
        return Place(sharding.keyed_shard_for(event_id) if keyed else shard, shard)

    def partitions_of_event(self, event_id: str) -> list[str]:
        """Returns every partition of the table that may contain the event."""
        return self._partitions(
            shard
            for sharding in self.shardings
            for shard in (sharding.shard_for(event_id), sharding.keyed_shard_for(event_id))
        )

    def keys(self, event_id: str, inbox: str) -> list[dict[str, Any]]:
        """Returns every key that the event may have in that inbox."""
        return [layout.event_key(partition, event_id, inbox) for partition in self.partitions_of_event(event_id)]

    def keys_of_keyed(self, event_id: str) -> list[dict[str, Any]]:
        """Returns every key that an event with an idempotency key may have in `default`."""
        return self._keys_of_keyed(self.shardings, event_id, DEFAULT_INBOX)

    def contested_keys(self, event_id: str, inbox: str, now_ms: int) -> list[dict[str, Any]]:
        """Returns every key under which a process may be storing this event with an idempotency key at the moment.

        Clocks differ, and a call may be repeated for many seconds, so a change concerns the time around it.
        """
        ends_ms = (self.end_ms(position) for position in range(len(self.shardings)))
        near = (
            sharding
            for sharding, end_ms in zip(self.shardings, ends_ms, strict=True)
            if sharding.since_ms <= now_ms + NOTICE_MS and (end_ms is None or end_ms > now_ms - NOTICE_MS)
        )
        return self._keys_of_keyed(near, event_id, inbox)

    def index_partitions(self, inbox: str) -> list[str]:
        shards = dict.fromkeys(each for sharding in self.shardings for each in sharding.shards())
        return [layout.make_index_partition(self.tenant_id, inbox, each) for each in shards]

    def table_partitions(self) -> list[str]:
        return self._partitions(
            each for sharding in self.shardings for each in (*sharding.shards(), *sharding.keyed_shards())
        )

    def end_ms(self, position: int) -> int | None:
        """Returns when a later sharding replaces this one, or None."""
        return min((later.since_ms for later in self.shardings[position + 1 :]), default=None)

    def _keys_of_keyed(self, shardings: Iterable[Sharding], event_id: str, inbox: str) -> list[dict[str, Any]]:
        partitions = self._partitions(each.keyed_shard_for(event_id) for each in shardings)
        return [layout.event_key(partition, event_id, inbox) for partition in partitions]

    def _partitions(self, shards: Iterable[str]) -> list[str]:
        return [layout.make_partition(self.tenant_id, each) for each in dict.fromkeys(shards)]


class Shards:
    """The shardings of all tenants. Thread-safe."""

    def __init__(self, connection: Connection, schema: SchemaVersion, retention_days: int) -> None:
        self._connection = connection
        self._schema = schema
        self._retention_ms = retention_days * Span.DAY.ms
        self._mutex = threading.Lock()
        self._cache: TTLCache[Hashable, TenantShards] = TTLCache(_MAX_CACHED_TENANTS, _CACHE_SECONDS)
        self._next_checks_ms: dict[str, int] = {}
        self._found_empty_ms: dict[Hashable, int] = {}

    @cachedmethod(attrgetter("_cache"), lock=attrgetter("_mutex"))
    def get(self, tenant_id: str) -> TenantShards:
        shards = _to_tenant_shards(tenant_id, _entries_in(self._read(tenant_id) or {}))
        if len(shards.shardings) > 1:
            self._next_checks_ms.setdefault(tenant_id, 0)
        return shards

    def change(self, tenant_id: str, shards: int, now_ms: int) -> None:
        """Spreads new events over `shards` partitions, and removes earlier shardings that have no events left."""
        for attempt in range(MAX_TRIES):
            item = self._read(tenant_id)
            if item is None:
                raise NotFound("tenant")
            entries = _entries_in(item)
            new = self._make_sharding(_to_tenant_shards(tenant_id, entries), shards, now_ms + NOTICE_MS)
            if new is None or self._replace(tenant_id, entries, [*entries, new.to_attribute()]):
                break
            back_off(attempt)
        else:
            raise StoreUnavailable("Other requests kept changing the tenant's shards.")
        with suppress(StoreUnavailable):
            # The index would have to be read twice, an hour apart: see `remove_empty`.
            self._remove_empty_of(tenant_id, now_ms, CHECK_INTERVAL_MS, reads_index=False)

    def remove_empty(self, now_ms: int) -> None:
        """Removes shardings that ended before the retention and that nothing is left in.

        Checks the tenants that this process serves, each once an hour.
        """
        for tenant_id, next_check_ms in list(self._next_checks_ms.items()):
            if next_check_ms <= now_ms:
                self._next_checks_ms[tenant_id] = now_ms + CHECK_INTERVAL_MS
                self._remove_empty_of(tenant_id, now_ms, max(self._retention_ms, CHECK_INTERVAL_MS))

    def _make_sharding(self, shards: TenantShards, new_count: int, since_ms: int) -> Sharding | None:
        """Returns None if the tenant has this sharding already."""
        # Earlier releases do not look for events with keys in partitions of their own, and know one series.
        are_known_to_all = self._schema.get() >= _MIN_SCHEMA_VERSION
        keyed, series = (KEYED_PARTITIONS, _choose_series(shards.shardings, new_count)) if are_known_to_all else (0, 0)
        new, latest = Sharding(new_count, since_ms, keyed, series), shards.shardings[-1]
        is_same = (new.spread, new.keyed_partitions) == (latest.spread, latest.keyed_partitions)
        return None if is_same else new

    def _remove_empty_of(self, tenant_id: str, now_ms: int, min_age_ms: int, *, reads_index: bool = True) -> None:
        # Earlier releases always read and may write to the first partition.
        if self._schema.get() < _MIN_SCHEMA_VERSION:
            return
        entries = _entries_in(self._read(tenant_id) or {})
        shards = _to_tenant_shards(tenant_id, entries)
        kept = list(shards.shardings)
        for position, sharding in enumerate(shards.shardings):
            end_ms = shards.end_ms(position)
            if end_ms is None or end_ms + min_age_ms > now_ms:
                continue
            others = [other for other in kept if other is not sharding]
            needs_index = bool(sharding.places_without(others)[1])
            if needs_index and not reads_index:
                continue
            if self._is_empty(tenant_id, sharding, end_ms, others, now_ms):
                kept = others
        if len(kept) < len(shards.shardings):
            stored = zip(shards.shardings[-len(entries) :], entries, strict=True)
            left = [entry for sharding, entry in stored if any(sharding is each for each in kept)]
            if kept[0].since_ms > 0:
                # Nothing is in the partitions of an earlier time, so the first sharding counts from the beginning.
                left[0] = {"M": left[0]["M"] | {"since": number(0)}}
            self._replace(tenant_id, entries, left)

    def _is_empty(
        self, tenant_id: str, sharding: Sharding, end_ms: int, others: Sequence[Sharding], now_ms: int
    ) -> bool:
        """Returns True if no event is in places of the sharding that the others do not read."""
        in_table, in_index = sharding.places_without(others)
        if any(self._has_item(layout.make_partition(tenant_id, shard)) for shard in in_table):
            return False
        if not in_index:
            return True
        found = (tenant_id, sharding.spread, end_ms)
        is_listed = any(
            self._is_listed(tenant_id, inbox, shard) for inbox in self._inboxes(tenant_id) for shard in in_index
        )
        if is_listed or any(self._has_type(tenant_id, shard) for shard in in_index):
            self._found_empty_ms.pop(found, None)
            return False
        # An index lags, and may not list an event while the event changes. So one look is not enough.
        return now_ms - self._found_empty_ms.setdefault(found, now_ms) >= CHECK_INTERVAL_MS

    def _has_item(self, partition: str) -> bool:
        return self._finds("pk", partition, ConsistentRead=True)

    def _is_listed(self, tenant_id: str, inbox: str, shard: str) -> bool:
        partition = layout.make_index_partition(tenant_id, inbox, shard)
        return self._finds("gsi1pk", partition, IndexName=STATUS_INDEX)

    def _has_type(self, tenant_id: str, shard: str) -> bool:
        """Returns True if events with a type are left, even if `status-index` does not list them."""
        partition = layout.make_index_partition(tenant_id, DEFAULT_INBOX, shard)
        return self._finds("gsi2pk", partition, IndexName=EVENT_TYPE_INDEX)

    def _finds(self, attribute: str, partition: str, **query: Any) -> bool:
        page = self._connection.query(
            TableName=self._connection.table(EVENTS),
            KeyConditionExpression=f"{attribute} = :partition",
            ExpressionAttributeValues={":partition": text(partition)},
            Limit=1,
            **query,
        )
        # A page without items may have left out an entry of another tenant.
        return bool(page["Items"]) or "LastEvaluatedKey" in page

    def _inboxes(self, tenant_id: str) -> Iterator[str]:
        """Yields the names of all inboxes, also of those that are being deleted."""
        yield DEFAULT_INBOX
        query = layout.tenant_items_query(tenant_id, INBOX_ITEMS)
        for item in self._connection.query_items(TENANTS, **query, ConsistentRead=True):
            if layout.is_inbox(item):
                yield item["name"]["S"]

    def _read(self, tenant_id: str) -> Item | None:
        return self._connection.get(TENANTS, layout.tenant_key(tenant_id))

    def _replace(self, tenant_id: str, known: list[Item], entries: list[Item]) -> bool:
        """Returns False if the entries have changed since they were read as `known`."""
        is_unchanged = "shards = :known" if known else "attribute_not_exists(shards)"
        values = {":new": {"L": entries}} | ({":known": {"L": known}} if known else {})
        update = {
            "TableName": self._connection.table(TENANTS),
            "Key": layout.tenant_key(tenant_id),
            "UpdateExpression": "SET shards = :new",
            "ConditionExpression": f"attribute_exists(PK) AND {is_unchanged}",
            "ExpressionAttributeValues": values,
        }
        return self._connection.try_write({"Update": update})


def _choose_series(shardings: Sequence[Sharding], shards: int) -> int:
    """Returns the series of shardings with the same number of shards, or one that no sharding has."""
    if shards == 1:
        return 0
    counts = defaultdict(set)
    for each in shardings:
        if each.series is not None and each.count > 1:
            counts[each.series].add(each.count)
    # In earlier releases, shardings with different numbers share a series. Their partitions would never be empty.
    same = [series for series, of_series in counts.items() if of_series == {shards}]
    return same[-1] if same else next(series for series in count() if series not in counts)


def _entries_in(item: Item) -> list[Item]:
    return list(item.get("shards", {}).get("L", []))


def _to_tenant_shards(tenant_id: str, entries: Sequence[Item]) -> TenantShards:
    stored = [_to_sharding(entry["M"]) for entry in entries]
    is_first_left = not stored or stored[0].since_ms > 0
    return TenantShards(tenant_id, (*([_FIRST] if is_first_left else []), *stored))


def _to_sharding(attributes: Item) -> Sharding:
    since_ms = int(attributes["since"]["N"])
    if "partitions" not in attributes:
        return Sharding(int(attributes["count"]["N"]), since_ms, series=None)
    partitions, keyed = int(attributes["partitions"]["N"]), number_in(attributes, "keyed")
    return Sharding(partitions, since_ms, keyed, number_in(attributes, "series"))
