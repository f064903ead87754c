"""Over which partitions a tenant's events are spread.

One partition of the index takes about 1,000 writes a second. A tenant that sends more gets several: an event's id says
which of them it goes to, and readers merge all that were ever in use.
"""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from cachetools import TTLCache, cachedmethod

from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import (
    TENANTS,
    UNSHARDED,
    Item,
    event_key,
    index_partition,
    number,
    old_shard,
    partition,
    shard,
    shard_of,
    tenant_key,
)

_CACHED_TENANTS = 10_000
_CACHE_SECONDS = 20
# By then every process has looked again, so nobody writes where somebody does not read yet.
NOTICE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Sharding:
    """New events are spread over `count` shards, from `since_ms` until the next sharding is in force."""

    count: int
    since_ms: int
    suffix: Callable[[int], str] = shard

    def shard_of(self, event_id: str) -> str:
        return self.suffix(shard_of(event_id, self.count)) if self.count > 1 else UNSHARDED

    def all(self) -> list[str]:
        return [self.suffix(each) for each in range(self.count)] if self.count > 1 else []

    def to_attribute(self) -> dict[str, Any]:
        # Releases that do not know `partitions` read `count` alone. They keep to the first partition then, which every
        # release reads, and not to partitions with the old suffix, which this sharding does not have.
        return {"M": {"count": number(1), "partitions": number(self.count), "since": number(self.since_ms)}}


@dataclass(frozen=True, slots=True)
class Spread:
    """A tenant's shardings, the latest last."""

    tenant_id: str
    shardings: tuple[Sharding, ...] = ()

    def for_new(self, event_id: str, now_ms: int) -> str:
        """Returns the shard of a new event."""
        in_force = [sharding for sharding in self.shardings if sharding.since_ms <= now_ms]
        return in_force[-1].shard_of(event_id) if in_force else UNSHARDED

    def may_hold(self, event_id: str) -> list[str]:
        """Every partition in which an event of that id can be, the usual one first."""
        shards = [UNSHARDED, *(sharding.shard_of(event_id) for sharding in self.shardings)]
        return [partition(self.tenant_id, each) for each in dict.fromkeys(shards)]

    def keys(self, event_id: str, inbox: str) -> list[dict[str, Any]]:
        """Every key that the event can have in that inbox."""
        return [event_key(partition, event_id, inbox) for partition in self.may_hold(event_id)]

    def all(self, inbox: str) -> list[str]:
        """Every partition of the index that has events of the inbox."""
        return [index_partition(self.tenant_id, inbox, each) for each in self._shards()]

    def homes(self) -> list[str]:
        """Every partition of the table that has events of the tenant."""
        return [partition(self.tenant_id, each) for each in self._shards()]

    def _shards(self) -> list[str]:
        return list(dict.fromkeys([UNSHARDED, *(each for sharding in self.shardings for each in sharding.all())]))


class Shards:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._mutex = threading.Lock()
        self._known: TTLCache[Hashable, Spread] = TTLCache(_CACHED_TENANTS, _CACHE_SECONDS)

    @cachedmethod(attrgetter("_known"), lock=attrgetter("_mutex"))
    def of(self, tenant_id: str) -> Spread:
        item = self._connection.get(TENANTS, tenant_key(tenant_id)) or {}
        return Spread(tenant_id, tuple(_sharding(each["M"]) for each in item.get("shards", {}).get("L", [])))


def _sharding(attributes: Item) -> Sharding:
    since_ms = int(attributes["since"]["N"])
    if "partitions" in attributes:
        return Sharding(int(attributes["partitions"]["N"]), since_ms)
    return Sharding(int(attributes["count"]["N"]), since_ms, old_shard)
