"""The partitions that a tenant's events are spread over.

One partition of the index accepts about 1,000 writes a second. A tenant that sends more has several: the event's ID
determines its partition, and reads merge all partitions that were ever in use.
"""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from cachetools import TTLCache, cachedmethod

from inbox.store.dynamodb import layout
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import TENANTS, UNSHARDED, Item, number

_MAX_CACHED_TENANTS = 10_000
_CACHE_SECONDS = 20
NOTICE_MS = 60_000
"""Delay before a new sharding takes effect. By then the caches of all processes have expired, so that no process
writes to a partition that another does not read yet."""


@dataclass(frozen=True, slots=True)
class Sharding:
    """From `since_ms` until the next sharding takes effect, new events are spread over `count` shards."""

    count: int
    since_ms: int
    suffix: Callable[[int], str] = layout.shard_suffix

    def shard_for(self, event_id: str) -> str:
        return self.suffix(layout.shard_number(event_id, self.count)) if self.count > 1 else UNSHARDED

    def shards(self) -> list[str]:
        return [self.suffix(each) for each in range(self.count)] if self.count > 1 else []

    def to_attribute(self) -> dict[str, Any]:
        # Releases that do not know `partitions` read `count` alone. With 1 they write to the first partition, which
        # every release reads, and not to partitions with the old suffix, which this sharding does not have.
        return {"M": {"count": number(1), "partitions": number(self.count), "since": number(self.since_ms)}}


@dataclass(frozen=True, slots=True)
class TenantShards:
    """A tenant's shardings, the latest last."""

    tenant_id: str
    shardings: tuple[Sharding, ...] = ()

    def shard_for_new(self, event_id: str, now_ms: int) -> str:
        in_effect = [sharding for sharding in self.shardings if sharding.since_ms <= now_ms]
        return in_effect[-1].shard_for(event_id) if in_effect else UNSHARDED

    def partitions_of_event(self, event_id: str) -> list[str]:
        """Returns every partition of the table that may contain the event, the most likely first."""
        shards = [UNSHARDED, *(sharding.shard_for(event_id) for sharding in self.shardings)]
        return [layout.make_partition(self.tenant_id, each) for each in dict.fromkeys(shards)]

    def keys(self, event_id: str, inbox: str) -> list[dict[str, Any]]:
        """Returns every key that the event may have in that inbox."""
        return [layout.event_key(partition, event_id, inbox) for partition in self.partitions_of_event(event_id)]

    def index_partitions(self, inbox: str) -> list[str]:
        return [layout.make_index_partition(self.tenant_id, inbox, each) for each in self._all()]

    def table_partitions(self) -> list[str]:
        return [layout.make_partition(self.tenant_id, each) for each in self._all()]

    def _all(self) -> list[str]:
        return list(dict.fromkeys([UNSHARDED, *(each for sharding in self.shardings for each in sharding.shards())]))


class Shards:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._mutex = threading.Lock()
        self._cache: TTLCache[Hashable, TenantShards] = TTLCache(_MAX_CACHED_TENANTS, _CACHE_SECONDS)

    @cachedmethod(attrgetter("_cache"), lock=attrgetter("_mutex"))
    def get(self, tenant_id: str) -> TenantShards:
        item = self._connection.get(TENANTS, layout.tenant_key(tenant_id)) or {}
        return TenantShards(tenant_id, tuple(_to_sharding(each["M"]) for each in item.get("shards", {}).get("L", [])))


def _to_sharding(attributes: Item) -> Sharding:
    since_ms = int(attributes["since"]["N"])
    if "partitions" in attributes:
        return Sharding(int(attributes["partitions"]["N"]), since_ms)
    return Sharding(int(attributes["count"]["N"]), since_ms, layout.old_shard_suffix)
