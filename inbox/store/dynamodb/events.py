"""Events in DynamoDB: combines the classes that implement the methods of `EventStore`."""

from functools import partial

from inbox.domain.events import Event, Order, Page, PageSize
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.attempts import Attempts
from inbox.store.dynamodb.claims import ClaimableEvents, Claims, fill_page
from inbox.store.dynamodb.connection import MAX_BATCH_GET, Connection
from inbox.store.dynamodb.event_states import KnownEvent, effective_state
from inbox.store.dynamodb.event_updates import EventUpdates
from inbox.store.dynamodb.event_writer import EventWriter
from inbox.store.dynamodb.history import History
from inbox.store.dynamodb.import_events import EventImport
from inbox.store.dynamodb.inboxes import InboxCache
from inbox.store.dynamodb.items import is_expired, to_event
from inbox.store.dynamodb.layout import EVENTS, Item, text
from inbox.store.dynamodb.leases import Leases
from inbox.store.dynamodb.pending_counts import EventCounter
from inbox.store.dynamodb.poll_queue import PollQueues
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
        index = StatusIndex(connection)
        self.claimable = ClaimableEvents(shards, index, updates, max_deliveries)
        queues = PollQueues()
        self._claims = Claims(connection, self.claimable, queues, counter, max_deliveries)
        self._attempts = Attempts(connection, shards, self.claimable, queues, max_deliveries)
        self._put_events = PutEvents(connection, shards, inboxes, counter)
        self.put = self._put_events.put
        self.set_batch_listener = self._put_events.set_batch_listener
        leases = Leases(connection, shards, updates, counter, max_deliveries)
        self.acknowledge = leases.acknowledge
        self.release = leases.release
        self.extend = leases.extend
        self._history = History(connection, shards, index, updates, max_deliveries)
        self.page = self._history.page
        self.replay_all = self._history.replay_all
        self.import_events = EventImport(connection, shards).import_events

    def get(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        item = self._item(tenant_id, inbox, event_id, now_ms)
        return None if item is None else to_event(item, now_ms, self._max_deliveries)

    def peek(self, tenant_id: str, inbox: str, order: Order, size: PageSize, now_ms: int) -> Page:
        known_events = self.claimable.find(tenant_id, inbox, order, size.events, now_ms)
        items, more = fill_page(known_events, size, MAX_BATCH_GET, partial(self._add_claimable, now_ms), [])
        return Page([to_event(item, now_ms, self._max_deliveries) for item in items], more)

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

    def replay(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        item = self._item(tenant_id, inbox, event_id, now_ms)
        return None if item is None else self._history.replay(item, now_ms)

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
        self._counter.count_deleted(self._writer.delete_returning([layout.key_of(item) for item in found]))
        return any(not is_expired(item, now_ms) for item in found)

    def purge(self, now_ms: int, limit: int) -> int:  # noqa: ARG002 - the interface's parameters
        """DynamoDB deletes by TTL."""
        return 0

    def _item(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Item | None:
        found = self._connection.get_many(EVENTS, self._shards.get(tenant_id).keys(event_id, inbox))
        return next((item for item in found if not is_expired(item, now_ms)), None)

    def _add_claimable(self, now_ms: int, known_events: list[KnownEvent], page: list[Item]) -> None:
        items = layout.by_sort_key(self._connection.get_many(EVENTS, [event.key for event in known_events]))
        for event in known_events:
            item = items.get(event.sort_key)
            if item is not None and effective_state(item, now_ms, self._max_deliveries).is_claimable:
                page.append(item)
