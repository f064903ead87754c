"""Named inboxes, and the cache of them that every put reads."""

import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from cachetools import TLRUCache

from inbox.domain.inboxes import MAX_INBOXES, Inbox
from inbox.errors import InboxClosing, InboxExists, TooManyInboxes
from inbox.store.dynamodb import layout, writes
from inbox.store.dynamodb.connection import MAX_BATCH_GET, Connection, groups_of
from inbox.store.dynamodb.counters import delete_counters
from inbox.store.dynamodb.event_writer import EventWriter
from inbox.store.dynamodb.layout import DEFAULT_ENABLED, EVENTS, INBOX_ITEMS, STATUS_INDEX, TENANTS, Item, number, text
from inbox.store.dynamodb.pending_counts import EventCounter
from inbox.store.dynamodb.shards import Shards

_MAX_CACHED_TENANTS = 10_000
# After this part of `cache_seconds`, one thread reads the inboxes again, while the others still use what is cached.
_REFRESH_AFTER_FRACTION = 0.8

_NEW = "attribute_not_exists(PK)"
_EXISTS = "attribute_exists(PK)"
# An inbox that is being deleted must not become open again with its old events.
_NOT_CLOSING = "attribute_not_exists(closing)"
_CLOSING = "attribute_exists(closing)"
_OPEN = f"{_EXISTS} AND {_NOT_CLOSING}"
# All names are in one item, so that concurrent creations are counted one after the other.
_ROOM_FOR_ANOTHER = "attribute_not_exists(inbox_names) OR size(inbox_names) < :limit"
# Another inbox with that name may have been created meanwhile.
_SAME_INBOX = "made_by = :made_by"
_SAME_AND_CLOSING = f"{_CLOSING} AND {_SAME_INBOX}"


@dataclass(frozen=True, slots=True)
class TenantInboxes:
    """`named` are the open ones, sorted by name."""

    default_enabled: bool
    named: list[Inbox]


@dataclass(slots=True)
class _CacheEntry:
    read_at: float
    inboxes: TenantInboxes
    is_refreshing: bool = False


class InboxCache:
    """Inboxes by tenant, cached for `cache_seconds`.

    A method that changes inboxes waits that long before it returns. Later puts, in any process, then see the change.
    """

    def __init__(self, connection: Connection, cache_seconds: float) -> None:
        self._connection = connection
        self._mutex = threading.Lock()
        self.cache_seconds = cache_seconds
        # The time counts from before the read: a slow response is an old one.
        self._cache: TLRUCache[str, _CacheEntry] = TLRUCache(
            _MAX_CACHED_TENANTS, lambda _key, entry, _now: entry.read_at + cache_seconds, time.monotonic
        )

    def get(self, tenant_id: str) -> TenantInboxes:
        now = time.monotonic()
        with self._mutex:
            entry = self._cache.get(tenant_id)
            if entry is not None:
                if entry.is_refreshing or now < entry.read_at + _REFRESH_AFTER_FRACTION * self.cache_seconds:
                    return entry.inboxes
                entry.is_refreshing = True
        refreshed = _CacheEntry(now, self.read(tenant_id))
        with self._mutex:
            self._cache[tenant_id] = refreshed
        return refreshed.inboxes

    def read(self, tenant_id: str) -> TenantInboxes:
        """Returns the tenant's inboxes as stored now."""
        query = layout.tenant_items_query(tenant_id, INBOX_ITEMS)
        items = list(self._connection.query_items(TENANTS, **query, ConsistentRead=True))
        named = [_to_inbox(item) for item in items if layout.is_inbox(item) and "closing" not in item]
        return TenantInboxes(not any(item.get(DEFAULT_ENABLED) == {"BOOL": False} for item in items), named)

    def wait_until_expired(self) -> None:
        """Waits until no process uses what it cached before."""
        time.sleep(self.cache_seconds)


class DynamoDBInboxes:
    def __init__(self, connection: Connection, shards: Shards, cache: InboxCache, counter: EventCounter) -> None:
        self._connection = connection
        self._table = connection.table(TENANTS)
        self._cache = cache
        self._shards = shards
        self._writer = EventWriter(connection)
        self._counter = counter

    def save(self, tenant_id: str, inbox: Inbox, *, replace: bool = True) -> bool:
        is_new, key = self._create(tenant_id, inbox), layout.inbox_key(tenant_id, inbox.name)
        replacement = writes.update(self._table, key, {"event_types": _event_types(inbox)}, _OPEN)
        if not is_new and not (replace and self._connection.try_write(replacement)):
            item = self._connection.get(TENANTS, key)
            if item is None:
                raise TooManyInboxes(MAX_INBOXES)
            if not replace and "closing" not in item:
                raise InboxExists(inbox.name)
            raise InboxClosing(inbox.name)
        self._cache.wait_until_expired()
        return is_new

    def get(self, tenant_id: str, name: str) -> Inbox | None:
        return next((inbox for inbox in self._cache.get(tenant_id).named if inbox.name == name), None)

    def all(self, tenant_id: str) -> list[Inbox]:
        return self._cache.read(tenant_id).named

    def close(self, tenant_id: str, name: str) -> bool:
        key = layout.inbox_key(tenant_id, name)
        # A closed inbox does not count towards the tenant's limit.
        self._connection.try_write(
            writes.update(self._table, key, {"closing": {"BOOL": True}}, _OPEN),
            self._update_names(tenant_id, "DELETE", name, _EXISTS),
        )
        exists = self._connection.get(TENANTS, key) is not None
        if exists:
            self._cache.wait_until_expired()
        return exists

    def delete_copies(self, tenant_id: str, name: str, limit: int) -> int:
        key = layout.inbox_key(tenant_id, name)
        item = self._connection.get(TENANTS, key)
        if item is None or "closing" not in item:
            return 0
        deleted = self._delete_listed_copies(tenant_id, name, limit)
        if deleted < limit:
            # The index lags: the last events before the inbox was closed may only be listed now.
            self._cache.wait_until_expired()
            deleted += self._delete_listed_copies(tenant_id, name, limit - deleted)
        if deleted < limit:
            self._counter.discard(tenant_id, name)
            delete_counters(self._connection, tenant_id, name)
            made_by = {":made_by": item["made_by"]}
            self._connection.try_write(writes.delete(self._table, key, _SAME_AND_CLOSING, made_by))
        return deleted

    def set_default_enabled(self, tenant_id: str, enabled: bool) -> None:
        attributes = {DEFAULT_ENABLED: {"BOOL": enabled}}
        self._connection.write(writes.update(self._table, layout.inbox_names_key(tenant_id), attributes))
        self._cache.wait_until_expired()

    def is_default_enabled(self, tenant_id: str) -> bool:
        return self._cache.get(tenant_id).default_enabled

    def _delete_listed_copies(self, tenant_id: str, name: str, limit: int) -> int:
        keys = list(islice(self._copies(tenant_id, name), limit))
        self._writer.delete_many(keys)
        return len(keys)

    def _copies(self, tenant_id: str, name: str) -> Iterator[Item]:
        queries = [
            self._connection.query_items(
                EVENTS,
                IndexName=STATUS_INDEX,
                KeyConditionExpression="gsi1pk = :partition",
                ExpressionAttributeValues={":partition": text(partition)},
                Limit=MAX_BATCH_GET,
            )
            for partition in self._shards.get(tenant_id).index_partitions(name)
        ]
        # Shard 3 of `default` shares a partition with an inbox named `3` if an earlier release created the shard.
        keys = (layout.key_of(item) for item in chain(*queries) if layout.inbox_of(item) == name)
        # The index lags: it still lists deleted items, which must not be counted again, and some events in two states.
        yielded: set[str] = set()
        for group in groups_of(MAX_BATCH_GET, keys):
            found = layout.by_sort_key(self._connection.get_many(EVENTS, group, ProjectionExpression="pk, sk"))
            yield from (key for sort_key, key in found.items() if sort_key not in yielded)
            yielded |= found.keys()

    def _create(self, tenant_id: str, inbox: Inbox) -> bool:
        """Stores a new inbox. Returns False if the name is taken, or the tenant has MAX_INBOXES."""
        item = {
            **layout.inbox_key(tenant_id, inbox.name),
            "name": text(inbox.name),
            "event_types": _event_types(inbox),
            "created_at": number(inbox.created_at_ms),
            "made_by": text(uuid.uuid4().hex),
        }
        limit = {":limit": number(MAX_INBOXES)}
        names = self._update_names(tenant_id, "ADD", inbox.name, _ROOM_FOR_ANOTHER, limit)
        return self._connection.try_write(writes.put(self._table, item, _NEW), names)

    def _update_names(
        self, tenant_id: str, action: str, name: str, condition: str, values: Item | None = None
    ) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": self._table,
                "Key": layout.inbox_names_key(tenant_id),
                "UpdateExpression": f"{action} inbox_names :name",
                "ConditionExpression": condition,
                "ExpressionAttributeValues": {":name": {"SS": [name]}} | dict(values or {}),
            }
        }


def _event_types(inbox: Inbox) -> dict[str, Any]:
    return {"NULL": True} if inbox.event_types is None else {"L": [text(pattern) for pattern in inbox.event_types]}


def _to_inbox(item: Item) -> Inbox:
    types = item["event_types"]
    return Inbox(
        name=item["name"]["S"],
        event_types=tuple(each["S"] for each in types["L"]) if "L" in types else None,
        created_at_ms=int(item["created_at"]["N"]),
    )
