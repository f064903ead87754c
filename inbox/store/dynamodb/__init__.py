"""The store for production: Amazon DynamoDB."""

from collections.abc import Callable

from inbox.clock import Clock
from inbox.store.dynamodb import writes
from inbox.store.dynamodb.arrivals import DynamoDBArrivalWatch
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.counters import DynamoDBCounters
from inbox.store.dynamodb.events import DynamoDBEvents
from inbox.store.dynamodb.inboxes import DynamoDBInboxes, InboxCache
from inbox.store.dynamodb.keys import DynamoDBKeys
from inbox.store.dynamodb.layout import ABSENT_EVENT_KEY, EVENTS
from inbox.store.dynamodb.pending_counts import EventCounter
from inbox.store.dynamodb.schema import SchemaVersion
from inbox.store.dynamodb.shards import Shards
from inbox.store.dynamodb.table_setup import init_tables
from inbox.store.dynamodb.tenants import DynamoDBTenants


class DynamoDBStore:
    """The constructor makes no call; `init` creates the tables."""

    def __init__(
        self,
        connection: Connection,
        max_deliveries: int,
        inbox_cache_seconds: float = 1.0,
        retention_days: int = 30,
        clock: Clock | None = None,
        settle_ms: int = 0,
        *,
        list_delivered: bool = True,
    ) -> None:
        self._connection = connection
        self.schema = SchemaVersion(connection)
        counter, shards = EventCounter(connection), Shards(connection, self.schema, retention_days)
        inbox_cache = InboxCache(connection, inbox_cache_seconds)
        self.events = DynamoDBEvents(
            connection,
            shards,
            inbox_cache,
            counter,
            max_deliveries,
            settle_ms,
            self.schema,
            list_delivered=list_delivered,
        )
        self.counters = DynamoDBCounters(connection, shards, self.events.claimable, counter, retention_days)
        self.inboxes = DynamoDBInboxes(connection, shards, inbox_cache, counter)
        self.keys = DynamoDBKeys(connection)
        self.tenants = DynamoDBTenants(connection, shards)
        self.set_batch_listener = self.events.set_batch_listener
        self.now_ms = (clock or Clock()).now_ms

    def init(self, *, streams: bool = False, report: Callable[[str], object] = lambda _step: None) -> None:
        init_tables(self._connection, self.schema, streams=streams, report=report)

    def check(self) -> None:
        self.schema.get()
        # The condition never holds, but everything that a write needs has worked by then.
        table = self._connection.table(EVENTS)
        self._connection.try_write(writes.delete(table, ABSENT_EVENT_KEY, "attribute_exists(pk)"))

    def watch_arrivals(self) -> DynamoDBArrivalWatch:
        return DynamoDBArrivalWatch(self.events.claimable)

    def close(self) -> None:
        self.counters.flush()
        self._connection.close()
