"""Exports a tenant's events in order, for another store.

The table is complete, and sorted by event ID. So the keys of all events are read and sorted before the first event is
read: a million keys take about 200 MB of memory. `status-index` is sorted by order key, but it lags behind the table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from inbox.domain.events import DEFAULT_INBOX, EventExport, ExportedEvent, Status
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.connection import MAX_BATCH_GET, Connection, groups_of
from inbox.store.dynamodb.event_states import hold_of, lease_state_of, new_state
from inbox.store.dynamodb.inboxes import InboxCache
from inbox.store.dynamodb.items import PENDING_COPIES, copy_for, is_expired, to_event
from inbox.store.dynamodb.layout import EVENTS, Item, text
from inbox.store.dynamodb.payloads import Payloads
from inbox.store.dynamodb.shards import Shards

_SEPARATOR = " "
"""Sorts before every character of a key."""


@dataclass(eq=False)
class EventsExport:
    _connection: Connection
    _shards: Shards
    _inboxes: InboxCache
    _payloads: Payloads
    _max_deliveries: int

    def export_events(self, tenant_id: str, now_ms: int) -> EventExport:
        inboxes = {DEFAULT_INBOX, *(inbox.name for inbox in self._inboxes.read(tenant_id).named)}
        # One text per event, which takes half the memory of a tuple.
        positions = sorted(
            _SEPARATOR.join((layout.order_key_of(item), item["pk"]["S"], item["sk"]["S"]))
            for item in self._read_keys(tenant_id)
            # Items with payloads have no status.
            if "status" in item and not is_expired(item, now_ms) and layout.inbox_of(item) in inboxes
        )
        return EventExport(len(positions), self._read_in_order(positions, inboxes))

    def _read_keys(self, tenant_id: str) -> Iterator[Item]:
        for partition in self._shards.get(tenant_id).table_partitions():
            yield from self._connection.all_items(
                EVENTS,
                KeyConditionExpression="pk = :partition",
                ProjectionExpression="pk, sk, gsi1sk, #status, #ttl",
                ExpressionAttributeNames={"#status": "status", "#ttl": "ttl"},
                ExpressionAttributeValues={":partition": text(partition)},
                ConsistentRead=True,
            )

    def _read_in_order(self, positions: list[str], inboxes: set[str]) -> Iterator[ExportedEvent]:
        event_id, fingerprint = "", None
        for group in groups_of(MAX_BATCH_GET, positions):
            sort_keys = [position.rpartition(_SEPARATOR)[2] for position in group]
            found = self._connection.get_many(EVENTS, [_key(position) for position in group])
            items = layout.by_sort_key(self._payloads.attach(found))
            # An event may have been deleted meanwhile.
            for item in (items[sort_key] for sort_key in sort_keys if sort_key in items):
                # The item of a copy has no fingerprint. It comes behind the event, which has the same order key.
                if item["event_id"]["S"] != event_id:
                    event_id, fingerprint = item["event_id"]["S"], item.get("fingerprint", {}).get("B")
                yield self._to_exported(item, fingerprint)
                for copy in self._missing_copies(item, inboxes):
                    yield self._to_exported(copy, fingerprint)

    def _missing_copies(self, item: Item, inboxes: set[str]) -> list[Item]:
        """Returns the copies that a process was about to write when it ended.

        The producer's retry would write them, but it may come when the event is in the other store.
        """
        names = {name["S"] for name in item.get(PENDING_COPIES, {}).get("L", [])} & inboxes
        state = new_state(Status.UNDELIVERED, layout.order_key_of(item))
        copies = [copy_for(name, item, state) for name in sorted(names)]
        stored = layout.by_sort_key(self._connection.get_many(EVENTS, [layout.key_of(copy) for copy in copies]))
        return [copy for copy in copies if copy["sk"]["S"] not in stored]

    def _to_exported(self, item: Item, fingerprint: bytes | None) -> ExportedEvent:
        hold = hold_of(item)
        number, origin = layout.parse_tiebreak(layout.order_key_of(item))
        # At 0 ms no lease had ended: the importing store decides which have.
        event = to_event(item, 0, self._max_deliveries)
        return ExportedEvent(
            number,
            event,
            fingerprint,
            expires_at_s=int(item["ttl"]["N"]),
            lost_leases=layout.lost_leases_in(lease_state_of(item)),
            available_at_ms=hold.until_ms if hold is not None and not hold.is_lease else None,
            origin=origin,
        )


def _key(position: str) -> dict[str, Any]:
    _, partition, sort_key = position.split(_SEPARATOR)
    return {"pk": text(partition), "sk": text(sort_key)}
