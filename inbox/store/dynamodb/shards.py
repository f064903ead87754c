"""Over which partitions a tenant's events are spread.

One partition of the index takes about 1,000 writes a second. A tenant that sends more gets several: an event's id says
which of them it goes to, and readers merge all that were ever in use.
"""

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from cachetools import TTLCache, cachedmethod

from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import TENANTS, event_key, index_partition, partition, shard_of, tenant_key

_CACHED_TENANTS = 10_000
_CACHE_SECONDS = 20
# By then every process has looked again, so nobody writes where somebody does not read yet.
NOTICE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Spread:
    """`counts` are the numbers of shards, and from when on new events go there; the latest comes last."""

    tenant_id: str
    counts: tuple[tuple[int, int], ...] = ()

    def for_new(self, event_id: str, now_ms: int) -> int | None:
        """The shard of a new event; None where there are none."""
        in_force = [count for count, since_ms in self.counts if since_ms <= now_ms]
        return _shard(event_id, in_force[-1] if in_force else 1)

    def may_hold(self, event_id: str) -> list[str]:
        """Every partition in which an event of that id can be, the usual one first."""
        shards = [None, *(_shard(event_id, count) for count, _ in self.counts)]
        return list(dict.fromkeys(partition(self.tenant_id, shard) for shard in shards))

    def keys(self, event_id: str, inbox: str) -> list[dict[str, Any]]:
        """Every key that the event can have in that inbox."""
        return [event_key(partition, event_id, inbox) for partition in self.may_hold(event_id)]

    def all(self, inbox: str) -> list[str]:
        """Every partition of the index that has events of the inbox."""
        return [index_partition(self.tenant_id, inbox, shard) for shard in self._shards()]

    def homes(self) -> list[str]:
        """Every partition of the table that has events of the tenant."""
        return [partition(self.tenant_id, shard) for shard in self._shards()]

    def _shards(self) -> list[int | None]:
        most = max((count for count, _ in self.counts), default=1)
        return [None, *(range(most) if most > 1 else ())]


def _shard(event_id: str, count: int) -> int | None:
    return shard_of(event_id, count) if count > 1 else None


class Shards:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._mutex = threading.Lock()
        self._known: TTLCache[Hashable, Spread] = TTLCache(_CACHED_TENANTS, _CACHE_SECONDS)

    @cachedmethod(attrgetter("_known"), lock=attrgetter("_mutex"))
    def of(self, tenant_id: str) -> Spread:
        return Spread(tenant_id, _counts(self._connection.get(TENANTS, tenant_key(tenant_id)) or {}))


def _counts(item: dict[str, dict[str, list[dict[str, dict[str, dict[str, str]]]]]]) -> tuple[tuple[int, int], ...]:
    return tuple(
        (int(each["M"]["count"]["N"]), int(each["M"]["since"]["N"])) for each in item.get("shards", {}).get("L", [])
    )
