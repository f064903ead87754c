"""Events in DynamoDB."""

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
from inbox.store.dynamodb.claims import Availability, Claiming, Spent, Turns, fill
from inbox.store.dynamodb.connection import READ_AT_ONCE, Connection
from inbox.store.dynamodb.event_states import Changes, Entry, standing
from inbox.store.dynamodb.event_writer import Writing
from inbox.store.dynamodb.history import History, Replaying
from inbox.store.dynamodb.import_events import Adopting
from inbox.store.dynamodb.inboxes import Definitions
from inbox.store.dynamodb.items import is_expired, to_event
from inbox.store.dynamodb.layout import EVENTS, Item, by_sort_key, key_of, text
from inbox.store.dynamodb.leases import Leases
from inbox.store.dynamodb.pending_counts import Counting
from inbox.store.dynamodb.put_events import Putting
from inbox.store.dynamodb.shards import Shards
from inbox.store.dynamodb.status_index import StatusIndex


class DynamoDBEvents:
    def __init__(
        self,
        connection: Connection,
        shards: Shards,
        definitions: Definitions,
        counting: Counting,
        max_deliveries: int,
    ) -> None:
        self._connection = connection
        self._counting = counting
        self._max_deliveries = max_deliveries
        self._shards = shards
        self._writing = Writing(connection)
        self._index = StatusIndex(connection)
        changes, spent, turns = Changes(connection, counting.changed), Spent(), Turns()
        self._changes = changes
        self.availability = Availability(self._shards, self._index, changes, spent, max_deliveries)
        self._putting = Putting(connection, self._shards, definitions, counting)
        self._claiming = Claiming(connection, self.availability, changes, spent, turns, counting, max_deliveries)
        self._attempts = Attempts(connection, self._shards, self.availability, changes, spent, turns, max_deliveries)
        self._leases = Leases(connection, self._shards, changes, counting, max_deliveries)
        self._history = History(connection, self._shards, self._index, max_deliveries)
        self._replaying = Replaying(changes, self._history, max_deliveries)
        self._adopting = Adopting(connection, self._shards)

    def put(self, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int) -> list[PutResult]:
        return self._putting.put(tenant_id, events, now_ms, expires_at_s)

    def get(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        item = self._item(tenant_id, inbox, event_id, now_ms)
        return None if item is None else to_event(item, now_ms, self._max_deliveries)

    def page(
        self, tenant_id: str, selection: Selection, order: Order, size: PageSize, after: str | None, now_ms: int
    ) -> Listing:
        return self._history.page(tenant_id, selection, order, size, after, now_ms)

    def peek(self, tenant_id: str, inbox: str, order: Order, size: PageSize, now_ms: int) -> Page:
        entries = self.availability.to_show(tenant_id, inbox, order, size.events, now_ms)
        return fill(entries, size, READ_AT_ONCE, partial(self._read, now_ms), [])

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
        return self._claiming.claim(tenant_id, inbox, size, now_ms, lease_until_ms)

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
        return None if item is None else self._replaying.replay(item, now_ms)

    def replay_all(self, tenant_id: str, selection: Selection, limit: int, now_ms: int) -> ReplayResult:
        return self._replaying.replay_all(tenant_id, selection, limit, now_ms)

    def erase(self, tenant_id: str, event_id: str, now_ms: int) -> bool:
        found = [
            item
            for partition in self._shards.of(tenant_id).may_hold(event_id)
            for item in self._connection.walk(
                TableName=self._connection.table(EVENTS),
                KeyConditionExpression="pk = :partition AND begins_with(sk, :event)",
                ExpressionAttributeValues={":partition": text(partition), ":event": text(event_id)},
                ProjectionExpression="pk, sk, #ttl",
                ExpressionAttributeNames={"#ttl": "ttl"},
                ConsistentRead=True,
            )
        ]
        self._counting.went(self._writing.erase([key_of(item) for item in found]))
        return any(not is_expired(item, now_ms) for item in found)

    def purge(self, now_ms: int, limit: int) -> int:  # noqa: ARG002 - as the port has it
        """DynamoDB deletes by TTL."""
        return 0

    def set_batch_listener(self, on_batch: Callable[[int], object]) -> None:
        self._putting.set_batch_listener(on_batch)

    def import_events(self, tenant_id: str, records: Sequence[ExportedEvent], now_ms: int) -> ImportResult:
        return self._adopting.import_events(tenant_id, records, now_ms)

    def _item(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Item | None:
        found = self._connection.get_many(EVENTS, self._shards.of(tenant_id).keys(event_id, inbox))
        return next((item for item in found if not is_expired(item, now_ms)), None)

    def _read(self, now_ms: int, entries: list[Entry], got: list[Event]) -> None:
        found = by_sort_key(self._connection.get_many(EVENTS, [entry.key for entry in entries]))
        for entry in entries:
            item = found.get(entry.sort_key)
            # The index may show what has moved on since.
            if item is not None and standing(item, now_ms, self._max_deliveries).is_available:
                got.append(to_event(item, now_ms, self._max_deliveries))
