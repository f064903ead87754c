"""Payloads above 1 KB: each in an item of its own beside its event.

Every write of an item costs a unit for each KB, and an event is written again when it is claimed and settled. Its
payload never changes, and the copies in named inboxes share it. It is written before the event, so an event that a poll
finds has its payload.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from inbox.store.dynamodb import layout, writes
from inbox.store.dynamodb.connection import MAX_BATCH_WRITE, Connection, groups_of
from inbox.store.dynamodb.layout import EVENTS, Item, text, text_in
from inbox.store.dynamodb.schema import SCHEMA_VERSION, SchemaVersion

MAX_INLINE_BYTES = 1024

PAYLOAD_KEY = "payload_key"
"""The sort key of the item with the payload, if it is not in the event's item."""

_log = structlog.get_logger()


@dataclass(eq=False)
class Payloads:
    _connection: Connection
    _schema: SchemaVersion

    def detach(self, items: Iterable[dict[str, Any]]) -> list[Item]:
        """Moves large payloads out of new events. Returns the items with the payloads, which must be written first."""
        large = [item for item in items if len(item["payload"].get("B", b"")) > MAX_INLINE_BYTES]
        # Release 0.1.0 could not read them.
        return [_detach(item) for item in large] if large and self._schema.get() >= SCHEMA_VERSION else []

    def write(self, payloads: Sequence[Item]) -> None:
        """Writes payloads. Safe to repeat: a payload never changes."""
        table = self._connection.table(EVENTS)
        if len(payloads) == 1:
            self._connection.write(writes.put(table, payloads[0]))
            return
        for group in groups_of(MAX_BATCH_WRITE, layout.by_sort_key(payloads).values()):
            request = {table: [{"PutRequest": {"Item": item}} for item in group]}
            self._connection.call_batch("batch_write_item", request, "UnprocessedItems")

    def attach(self, items: Sequence[Item]) -> list[Item]:
        """Returns the events with their payloads. Leaves out an event whose payload was deleted meanwhile."""
        keys = [_payload_key_of(item) for item in items if PAYLOAD_KEY in item]
        payloads = layout.by_sort_key(self._connection.get_many(EVENTS, keys))
        attached: list[Item] = []
        for item in items:
            payload = payloads.get(text_in(item, PAYLOAD_KEY) or "")
            if payload is not None:
                attached.append({**item, "payload": payload["payload"]})
            elif PAYLOAD_KEY not in item:
                attached.append(item)
            else:
                _log.warning("event without its payload", event_id=item["event_id"]["S"])
        return attached


def _detach(item: dict[str, Any]) -> Item:
    payload_key = layout.make_payload_sort_key(item["event_id"]["S"], item.get("fingerprint", {}).get("B"))
    payload = item.pop("payload")
    item[PAYLOAD_KEY] = text(payload_key)
    shared = {name: item[name] for name in ("pk", "tenant_id", "event_id", "ttl")}
    return {**shared, "sk": text(payload_key), "payload": payload}


def _payload_key_of(item: Item) -> dict[str, Any]:
    return {"pk": item["pk"], "sk": item[PAYLOAD_KEY]}
