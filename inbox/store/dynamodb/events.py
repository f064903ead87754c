"""Events in DynamoDB."""

from collections.abc import Sequence

from inbox.events import Adopted, Event, NewEvent, Order, Page, PageSize, Record, Status, Stored
from inbox.store.dynamodb.adopting import Adopting
from inbox.store.dynamodb.claiming import Claiming
from inbox.store.dynamodb.connection import READ_AT_ONCE, Connection
from inbox.store.dynamodb.items import is_expired, to_event
from inbox.store.dynamodb.layout import EVENTS, by_id, event_key, text
from inbox.store.dynamodb.putting import Putting
from inbox.store.dynamodb.shards import Shards
from inbox.store.dynamodb.status_index import Entry, StatusIndex, fill


class DynamoDBEvents:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._shards = Shards(connection)
        self._index = StatusIndex(connection)
        self._putting = Putting(connection, self._shards)
        self._claiming = Claiming(connection, self._shards, self._index)
        self._adopting = Adopting(connection, self._shards)

    def put(self, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int) -> list[Stored]:
        return self._putting.put(tenant_id, events, now_ms, expires_at_s)

    def get(self, tenant_id: str, event_id: str, now_ms: int) -> Event | None:
        partitions = self._shards.of(tenant_id).may_hold(event_id)
        found = self._connection.get_many(EVENTS, [event_key(partition, event_id) for partition in partitions])
        return next((to_event(item) for item in found if not is_expired(item, now_ms)), None)

    def page(self, tenant_id: str, status: Status, order: Order, size: PageSize, now_ms: int) -> Page:
        partitions = self._shards.of(tenant_id).all()
        entries = self._index.entries(partitions, status, order, size.events, now_ms)
        return fill(entries, size, READ_AT_ONCE, self._read, [])

    def claim(self, tenant_id: str, size: PageSize, now_ms: int) -> Page:
        return self._claiming.claim(tenant_id, size, now_ms)

    def adopt(self, tenant_id: str, records: Sequence[Record], now_ms: int) -> Adopted:
        return self._adopting.adopt(tenant_id, records, now_ms)

    def _read(self, entries: list[Entry], got: list[Event]) -> None:
        found = by_id(self._connection.get_many(EVENTS, [entry.key for entry in entries]))
        for entry in entries:
            item = found.get(entry.event_id)
            # The index may show what has moved on since.
            if item is not None and item["gsi1sk"] == text(entry.status_key):
                got.append(to_event(item))
