"""The partitions that a tenant's events are spread over.

One partition of the index accepts about 1,000 writes a second. A tenant that sends more has several: the event's ID
determines its partition, and reads merge all partitions that were ever in use.

An event with an idempotency key is looked up by its ID alone. Its partition of the table therefore comes from a fixed
number of them, which later changes keep. Only its partition of the index depends on the number of shards.
"""

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple

from cachetools import TTLCache, cachedmethod

from inbox.domain.events import DEFAULT_INBOX
from inbox.errors import NotFound, StoreUnavailable
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.connection import MAX_TRIES, Connection, back_off
from inbox.store.dynamodb.layout import TENANTS, UNSHARDED, Item, number, number_in
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


class Place(NamedTuple):
    """The suffixes of an event's partitions."""

    table_shard: str
    index_shard: str


@dataclass(frozen=True, slots=True)
class Sharding:
    """From `since_ms` until the next sharding takes effect, new events are spread over `count` shards.

    `keyed_partitions` is 0 if all events with idempotency keys are in the first partition.
    """

    count: int
    since_ms: int
    keyed_partitions: int = 0
    suffix: Callable[[int], str] = layout.shard_suffix

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

    def to_attribute(self) -> dict[str, Any]:
        # Releases that do not know `partitions` read `count` alone. With 1 they write to the first partition, which
        # every release reads, and not to partitions with the old suffix, which this sharding does not have.
        attributes = {"count": number(1), "partitions": number(self.count), "since": number(self.since_ms)}
        return {"M": attributes | ({"keyed": number(self.keyed_partitions)} if self.keyed_partitions else {})}

    def _suffix(self, shard: int) -> str:
        if self.count == 1:
            return UNSHARDED
        return self.suffix(shard)


_FIRST = Sharding(1, 0)
"""The sharding of a tenant that was not sharded, and of every tenant before it was."""


@dataclass(frozen=True, slots=True)
class TenantShards:
    """A tenant's shardings, the latest last."""

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

    def __init__(self, connection: Connection, schema: SchemaVersion) -> None:
        self._connection = connection
        self._schema = schema
        self._mutex = threading.Lock()
        self._cache: TTLCache[Hashable, TenantShards] = TTLCache(_MAX_CACHED_TENANTS, _CACHE_SECONDS)

    @cachedmethod(attrgetter("_cache"), lock=attrgetter("_mutex"))
    def get(self, tenant_id: str) -> TenantShards:
        return _to_tenant_shards(tenant_id, _entries_in(self._read(tenant_id) or {}))

    def change(self, tenant_id: str, shards: int, now_ms: int) -> None:
        """Spreads new events over so many shards."""
        for attempt in range(MAX_TRIES):
            item = self._read(tenant_id)
            if item is None:
                raise NotFound("tenant")
            entries = _entries_in(item)
            new = self._make_sharding(_to_tenant_shards(tenant_id, entries), shards, now_ms + NOTICE_MS)
            if new is None or self._replace(tenant_id, entries, [*entries, new.to_attribute()]):
                return
            back_off(attempt)
        raise StoreUnavailable("Other requests kept changing the tenant's shards.")

    def _make_sharding(self, shards: TenantShards, new_count: int, since_ms: int) -> Sharding | None:
        """Returns None if the tenant has this sharding already."""
        # Earlier releases do not look for events with keys in partitions of their own.
        keyed = KEYED_PARTITIONS if self._schema.get() >= _MIN_SCHEMA_VERSION else 0
        new = Sharding(new_count, since_ms, keyed)
        return None if replace(shards.shardings[-1], since_ms=since_ms) == new else new

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


def _entries_in(item: Item) -> list[Item]:
    return list(item.get("shards", {}).get("L", []))


def _to_tenant_shards(tenant_id: str, entries: Sequence[Item]) -> TenantShards:
    stored = [_to_sharding(entry["M"]) for entry in entries]
    return TenantShards(tenant_id, (_FIRST, *stored))


def _to_sharding(attributes: Item) -> Sharding:
    since_ms = int(attributes["since"]["N"])
    if "partitions" not in attributes:
        return Sharding(int(attributes["count"]["N"]), since_ms, suffix=layout.old_shard_suffix)
    return Sharding(int(attributes["partitions"]["N"]), since_ms, number_in(attributes, "keyed"))
