"""Events in DynamoDB: combines the classes that implement the methods of `EventStore`."""

from inbox.domain.events import Page, PageSize
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.attempts import Attempts
from inbox.store.dynamodb.claim_tokens import ClaimTokens
from inbox.store.dynamodb.claimable_events import ClaimableEvents
from inbox.store.dynamodb.claims import Claims
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.event_updates import EventUpdates
from inbox.store.dynamodb.event_writer import EventWriter
from inbox.store.dynamodb.export_events import EventsExport
from inbox.store.dynamodb.history import History
from inbox.store.dynamodb.import_events import EventImport
from inbox.store.dynamodb.inboxes import InboxCache
from inbox.store.dynamodb.items import is_expired
from inbox.store.dynamodb.layout import EVENTS, text
from inbox.store.dynamodb.leases import Leases
from inbox.store.dynamodb.payloads import Payloads
from inbox.store.dynamodb.pending_counts import EventCounter
from inbox.store.dynamodb.put_events import PutEvents
from inbox.store.dynamodb.schema import SchemaVersion
from inbox.store.dynamodb.shards import Shards
from inbox.store.dynamodb.status_index import StatusIndex


class DynamoDBEvents:
    # Attributes instead of methods that only call another object: mypy checks them against `EventStore` all the same.
    def __init__(
        self,
        connection: Connection,
        shards: Shards,
        inboxes: InboxCache,
        counter: EventCounter,
        max_deliveries: int,
        settle_ms: int,
        schema: SchemaVersion,
        *,
        list_delivered: bool,
    ) -> None:
        self._connection = connection
        self._shards = shards
        self._counter = counter
        self._writer = EventWriter(connection)
        payloads = Payloads(connection, schema)
        self._updates = updates = EventUpdates(connection, schema, counter.count_update, list_delivered=list_delivered)
        index, tokens = StatusIndex(connection), ClaimTokens(connection)
        self.claimable = ClaimableEvents(shards, index, updates, max_deliveries, settle_ms)
        self._claims = Claims(connection, self.claimable, tokens, counter, payloads, max_deliveries)
        self.peek = self._claims.peek
        self._attempts = Attempts(connection, shards, self.claimable, tokens, payloads, max_deliveries)
        self._put_events = PutEvents(connection, shards, inboxes, counter, payloads)
        self.put = self._put_events.put
        self.set_batch_listener = self._put_events.set_batch_listener
        leases = Leases(connection, shards, updates, counter, max_deliveries)
        self.acknowledge = leases.acknowledge
        self.release = leases.release
        self.extend = leases.extend
        history = History(connection, shards, index, updates, payloads, max_deliveries, lists_delivered=list_delivered)
        self.get = history.get
        self.page = history.page
        self.replay = history.replay
        self.replay_all = history.replay_all
        self.export_events = EventsExport(connection, shards, inboxes, payloads, max_deliveries).export_events
        self.import_events = EventImport(connection, shards, self._writer, payloads).import_events

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

    def erase(self, tenant_id: str, event_id: str, now_ms: int) -> bool:
        found = [
            item
            for partition in self._shards.get(tenant_id).partitions_of_event(event_id)
            for item in self._connection.query_items(
                EVENTS,
                KeyConditionExpression="pk = :partition AND begins_with(sk, :event)",
                ExpressionAttributeValues={":partition": text(partition), ":event": text(event_id)},
                ProjectionExpression="pk, sk, #ttl",
                ExpressionAttributeNames={"#ttl": "ttl"},
                ConsistentRead=True,
            )
        ]
        payloads = [item for item in found if layout.is_payload(item)]
        events = [item for item in found if not layout.is_payload(item)]
        # The payload first: another event may be stored under the same idempotency key once the event is gone.
        self._writer.delete_returning([layout.key_of(item) for item in payloads])
        self._counter.count_deleted(self._writer.delete_returning([layout.key_of(item) for item in events]))
        return any(not is_expired(item, now_ms) for item in events)

    def purge(self, now_ms: int, limit: int) -> int:  # noqa: ARG002 - the interface's parameters
        """Deletes nothing: DynamoDB deletes expired items by TTL. Their partitions need not be read any more."""
        self._shards.remove_empty(now_ms)
        return 0
