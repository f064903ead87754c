"""Imports events from another store."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from inbox.domain.events import DEFAULT_INBOX, ExportedEvent, ImportResult, NewEvent
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.event_states import imported_state, lease_state_of
from inbox.store.dynamodb.event_writer import EventWriter
from inbox.store.dynamodb.items import UNLISTED_PARTITION, copy_for, index_partition_of, is_too_large, to_item
from inbox.store.dynamodb.layout import EVENTS, Item, text
from inbox.store.dynamodb.payloads import Payloads
from inbox.store.dynamodb.shards import Place, Shards

_IMPORTED_STATE = "adopted"
"""The attribute with the imported state. While the event still has that state, this store has not changed it."""
_STATE = f"pk, sk, gsi1pk, {UNLISTED_PARTITION}, gsi1sk, deliveries, lost_leases, payload_bytes, {_IMPORTED_STATE}"


@dataclass(eq=False)
class EventImport:
    _connection: Connection
    _shards: Shards
    _writer: EventWriter
    _payloads: Payloads

    def import_events(self, tenant_id: str, records: Sequence[ExportedEvent], now_ms: int) -> ImportResult:
        shards = self._shards.get(tenant_id)
        keys = [key for record in records for key in shards.keys(record.event.event_id, record.event.inbox)]
        found = self._connection.get_many(EVENTS, keys, ProjectionExpression=_STATE)
        existing_items = layout.by_sort_key(found)
        new: list[Item] = []
        conditional_writes: list[Callable[[], object]] = []
        payloads: list[Item] = []
        too_large = []
        for record in records:
            event_id = record.event.event_id
            place = shards.place_for_new(event_id, now_ms, keyed=record.fingerprint is not None)
            item = _to_item(tenant_id, place, record)
            existing = existing_items.get(item["sk"]["S"])
            if existing is not None and not _is_outdated(existing, item):
                continue
            if is_too_large(item):
                too_large.append(event_id)
                continue
            if existing is not None:
                item |= _keys_of(existing, item)
            payloads += self._payloads.detach([item])
            if existing is not None:
                conditional_writes.append(partial(self._writer.replace, item, existing))
            elif record.fingerprint is not None:
                # An event with the same idempotency key may be sent meanwhile.
                contested_keys = shards.contested_keys(event_id, record.event.inbox, now_ms)
                conditional_writes.append(partial(self._writer.insert, item, now_ms, contested_keys))
            else:
                new.append(item)
        self._payloads.write(payloads)
        self._connection.map_parallel(lambda write: write(), conditional_writes)
        self._writer.put_all_new(new)
        return ImportResult(len(new) + len(conditional_writes), too_large)


def _to_item(tenant_id: str, place: Place, record: ExportedEvent) -> dict[str, Any]:
    event = record.event
    # The same whenever the event is imported again.
    order_key = layout.make_order_key(event.timestamp_ms, record.number, record.origin)
    state = imported_state(event, order_key, record.lost_leases, record.available_at_ms)
    new = NewEvent(event.event_id, event.event_type, event.payload, record.fingerprint)
    item = to_item(tenant_id, place, new, event.timestamp_ms, order_key, state, record.expires_at_s)
    if event.inbox != DEFAULT_INBOX:
        item = copy_for(event.inbox, item, state)
    return item | {_IMPORTED_STATE: _state_of(item)}


def _state_of(item: Item) -> dict[str, str]:
    hold = f" {lease_state_of(item)}" if "S" in item.get("lost_leases", {}) else ""
    return text(f"{item['gsi1sk']['S']} {item['deliveries']['N']}{hold}")


def _is_outdated(existing: Item, item: Item) -> bool:
    """Returns True if the source has changed the event since the last import and this store has not."""
    return existing.get(_IMPORTED_STATE) == _state_of(existing) != _state_of(item)


def _keys_of(existing: Item, item: Item) -> dict[str, Any]:
    """Returns the existing keys: the event keeps its partitions, even if the tenant's shards have changed."""
    partition = text(index_partition_of(existing))
    index_partitions = {name: partition for name in ("gsi1pk", "gsi2pk") if name in item}
    return {**layout.key_of(existing), **index_partitions}
