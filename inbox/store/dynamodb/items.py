"""Events as items, and back."""

from typing import Any

from inbox.events import Event, Status
from inbox.store.dynamodb import payloads
from inbox.store.dynamodb.layout import Item, event_index_keys, event_key, number, text
from inbox.store.dynamodb.layout import partition as tenant_partition

# DynamoDB takes 400 KB. The rest of an item, and what a claim adds to it, stays well below 4.
MOST_PAYLOAD_BYTES = 396 * 1024


def to_item(
    tenant_id: str, partition: str, event: Event, place: str, expires_at_s: int, fingerprint: bytes | None
) -> dict[str, Any]:
    # An event with a key is looked for under its id alone, so that stays the same whatever the number of shards. It is
    # the index that has to be spread: ids are random, and DynamoDB splits a table's partition between them by itself.
    home = partition if fingerprint is None else tenant_partition(tenant_id)
    item = {
        **event_key(home, event.event_id),
        **event_index_keys(partition, event.event_type, event.status, place),
        "tenant_id": text(tenant_id),
        "event_id": text(event.event_id),
        "status": text(event.status),
        "timestamp": number(event.timestamp_ms),
        "deliveries": number(event.deliveries),
        "payload": payloads.to_attribute(event.payload),
        "payload_bytes": number(len(event.payload)),
        "ttl": number(expires_at_s),
    }
    if event.event_type is not None:
        item["event_type"] = text(event.event_type)
    if event.delivered_at_ms is not None:
        item["delivered_at"] = number(event.delivered_at_ms)
    if fingerprint is not None:
        item["fingerprint"] = {"B": fingerprint}
    return item


def is_too_large(item: Item) -> bool:
    return len(item["payload"].get("B", b"")) > MOST_PAYLOAD_BYTES


def to_event(item: Item) -> Event:
    return Event(
        event_id=item["event_id"]["S"],
        event_type=item["event_type"]["S"] if "event_type" in item else None,
        timestamp_ms=int(item["timestamp"]["N"]),
        status=Status(item["status"]["S"]),
        deliveries=int(item["deliveries"]["N"]),
        delivered_at_ms=int(item["delivered_at"]["N"]) if "delivered_at" in item else None,
        payload=payloads.from_attribute(item["payload"]),
    )


def is_expired(item: Item, now_ms: int) -> bool:
    return int(item["ttl"]["N"]) <= now_ms // 1000
