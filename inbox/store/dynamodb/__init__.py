"""The store for production: Amazon DynamoDB."""

from collections.abc import Callable
from contextlib import suppress

from inbox.clock import Clock
from inbox.store.dynamodb.arrivals import DynamoDBArrivals
from inbox.store.dynamodb.connection import ConditionFailed, Connection
from inbox.store.dynamodb.counters import DynamoDBCounters
from inbox.store.dynamodb.events import DynamoDBEvents
from inbox.store.dynamodb.inboxes import Definitions, DynamoDBInboxes
from inbox.store.dynamodb.keys import DynamoDBKeys
from inbox.store.dynamodb.layout import EVENTS, NOWHERE
from inbox.store.dynamodb.pending_counts import Counting
from inbox.store.dynamodb.shards import Shards
from inbox.store.dynamodb.tables import make_tables
from inbox.store.dynamodb.tenants import DynamoDBTenants


class DynamoDBStore:
    """Opening it makes no call; its tables are made by `init`."""

    def __init__(
        self,
        connection: Connection,
        max_deliveries: int,
        remember_inboxes_seconds: float = 1.0,
        retention_days: int = 30,
        clock: Clock | None = None,
    ) -> None:
        self._connection = connection
        counting = Counting(connection)
        shards, definitions = Shards(connection), Definitions(connection, remember_inboxes_seconds)
        self.events = DynamoDBEvents(connection, shards, definitions, counting, max_deliveries)
        self.counters = DynamoDBCounters(connection, shards, self.events.availability, counting, retention_days)
        self.inboxes = DynamoDBInboxes(connection, shards, definitions, counting)
        self.keys = DynamoDBKeys(connection)
        self.tenants = DynamoDBTenants(connection)
        self.now_ms = (clock or Clock()).now_ms

    def init(self) -> None:
        make_tables(self._connection)

    def check(self) -> None:
        # Refused by its condition, after everything that a write needs has worked.
        with suppress(ConditionFailed):
            self._connection.call(
                "delete_item",
                TableName=self._connection.table(EVENTS),
                Key=NOWHERE,
                ConditionExpression="attribute_exists(pk)",
            )

    def set_batch_listener(self, on_batch: Callable[[int], object]) -> None:
        self.events.set_batch_listener(on_batch)

    def watch_arrivals(self) -> DynamoDBArrivals:
        return DynamoDBArrivals(self.events.availability)

    def close(self) -> None:
        self.counters.flush()
        self._connection.close()
