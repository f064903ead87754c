"""Events in DynamoDB: the methods of `EventStore`, each in the class that implements it."""

from collections.abc import Callable, Sequence
from functools import partial

from inbox.domain.events import (
    Event,
    ExportedEvent,
    ImportResult,
    Listing,
    NewEvent,
    Order,
    Page,
    PageSize,
    PutResult,
    Receipt,
    ReplayResult,
    Selection,
)
from inbox.store.dynamodb.attempts import Attempts
from inbox.store.dynamodb.claims import ClaimableEvents, Claims, PollQueues, RecentClaims, fill_page
from inbox.store.dynamodb.connection import MAX_BATCH_GET, Connection
from inbox.store.dynamodb.event_states import EventUpdates, KnownEvent, effective_state
from inbox.store.dynamodb.event_writer import EventWriter
from inbox.store.dynamodb.history import History, Replays
from inbox.store.dynamodb.import_events import EventImport
from inbox.store.dynamodb.inboxes import InboxCache
from inbox.store.dynamodb.items import is_expired, to_event
from inbox.store.dynamodb.layout import EVENTS, Item, by_sort_key, key_of, text
from inbox.store.dynamodb.leases import Leases
from inbox.store.dynamodb.pending_counts import EventCounter
from inbox.store.dynamodb.put_events import PutEvents
from inbox.store.dynamodb.shards import Shards
from inbox.store.dynamodb.status_index import StatusIndex


class DynamoDBEvents:
    def __init__(
        self, connection: Connection, shards: Shards, inboxes: InboxCache, counter: EventCounter, max_deliveries: int
    ) -> None:
        self._connection = connection
        self._shards = shards
        self._counter = counter
        self._max_deliveries = max_deliveries
        self._writer = EventWriter(connection)
        self._updates = updates = EventUpdates(connection, counter.count_update)
        index, recent, queues = StatusIndex(connection), RecentClaims(), PollQueues()
        self.claimable = ClaimableEvents(shards, index, updates, recent, max_deliveries)
        self._put_events = PutEvents(connection, shards, inboxes, counter)
        self._claims = Claims(connection, self.claimable, updates, recent, queues, counter, max_deliveries)
        self._attempts = Attempts(connection, shards, self.claimable, updates, recent, queues, max_deliveries)
        self._leases = Leases(connection, shards, updates, counter, max_deliveries)
        self._history = History(connection, shards, index, max_deliveries)
        self._replays = Replays(updates, self._history, max_deliveries)
        self._import = EventImport(connection, shards)

    def put(self, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int) -> list[PutResult]:
        return self._put_events.put(tenant_id, events, now_ms, expires_at_s)

    def get(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        item = self._item(tenant_id, inbox, event_id, now_ms)
        return None if item is None else to_event(item, now_ms, self._max_deliveries)

    def page(
        self, tenant_id: str, selection: Selection, order: Order, size: PageSize, after: str | None, now_ms: int
    ) -> Listing:
        return self._history.page(tenant_id, selection, order, size, after, now_ms)

    def peek(self, tenant_id: str, inbox: str, order: Order, size: PageSize, now_ms: int) -> Page:
        known_events = self.claimable.find(tenant_id, inbox, order, size.events, now_ms)
        return fill_page(known_events, size, MAX_BATCH_GET, partial(self._add_claimable, now_ms), [])

    def claim(
        self,
        tenant_id: str,
        inbox: str,
        size: PageSize,
        now_ms: int,
        lease_until_ms: int | None = None,
        attempt: str | None = None,
    ) -> Page:
        if attempt is not None:
            return self._attempts.claim(tenant_id, inbox, size, now_ms, lease_until_ms, attempt)
        return self._claims.claim(tenant_id, inbox, size, now_ms, lease_until_ms)

    def acknowledge(self, tenant_id: str, receipts: Sequence[Receipt], now_ms: int) -> list[bool]:
        return self._leases.acknowledge(tenant_id, receipts, now_ms)

    def release(
        self, tenant_id: str, receipts: Sequence[Receipt], available_at_ms: int, now_ms: int, *, failed: bool = False
    ) -> list[bool]:
        return self._leases.release(tenant_id, receipts, available_at_ms, now_ms, failed=failed)

    def extend(self, tenant_id: str, receipts: Sequence[Receipt], lease_until_ms: int, now_ms: int) -> list[bool]:
        return self._leases.extend(tenant_id, receipts, lease_until_ms, now_ms)

    def replay(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        item = self._item(tenant_id, inbox, event_id, now_ms)
        return None if item is None else self._replays.replay(item, now_ms)

    def replay_all(self, tenant_id: str, selection: Selection, limit: int, now_ms: int) -> ReplayResult:
        return self._replays.replay_all(tenant_id, selection, limit, now_ms)

    def erase(self, tenant_id: str, event_id: str, now_ms: int) -> bool:
        found = [
            item
            for partition in self._shards.get(tenant_id).partitions_of_event(event_id)
            for item in self._connection.query_items(
                TableName=self._connection.table(EVENTS),
                KeyConditionExpression="pk = :partition AND begins_with(sk, :event)",
                ExpressionAttributeValues={":partition": text(partition), ":event": text(event_id)},
                ProjectionExpression="pk, sk, #ttl",
                ExpressionAttributeNames={"#ttl": "ttl"},
                ConsistentRead=True,
            )
        ]
        self._counter.count_deleted(self._writer.erase([key_of(item) for item in found]))
        return any(not is_expired(item, now_ms) for item in found)

    def purge(self, now_ms: int, limit: int) -> int:  # noqa: ARG002 - the interface's parameters
        """DynamoDB deletes by TTL."""
        return 0

    def set_batch_listener(self, on_batch: Callable[[int], object]) -> None:
        self._put_events.set_batch_listener(on_batch)

    def import_events(self, tenant_id: str, records: Sequence[ExportedEvent], now_ms: int) -> ImportResult:
        return self._import.import_events(tenant_id, records, now_ms)

    def _item(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Item | None:
        found = self._connection.get_many(EVENTS, self._shards.get(tenant_id).keys(event_id, inbox))
        return next((item for item in found if not is_expired(item, now_ms)), None)

    def _add_claimable(self, now_ms: int, known_events: list[KnownEvent], page: list[Event]) -> None:
        items = by_sort_key(self._connection.get_many(EVENTS, [event.key for event in known_events]))
        for event in known_events:
            item = items.get(event.sort_key)
            if item is not None and effective_state(item, now_ms, self._max_deliveries).is_claimable:
                page.append(to_event(item, now_ms, self._max_deliveries))
