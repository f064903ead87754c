"""Conversion between events and items, and the format of payloads."""

import re
import zlib
from collections.abc import Mapping
from json import JSONDecoder
from typing import Any

from inbox.domain import exact_json
from inbox.domain.events import DEFAULT_INBOX, Event, Lease, NewEvent, Status
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.event_states import EventState, KnownEvent, effective_state, lease_state_of
from inbox.store.dynamodb.layout import Item, number, number_in, text, text_in
from inbox.store.dynamodb.shards import Place

# The limit of an item is 400 KB. Everything but the payload takes much less than 4 KB.
MAX_PAYLOAD_BYTES = 396 * 1024

PENDING_COPIES = "pending_copies"
"""On an event with an idempotency key: the inboxes whose copies may not be written yet."""

UNLISTED_PARTITION = "unlisted_pk"
"""On an event that `status-index` does not list: the value of `gsi1pk` that makes it list the event again."""

# Attributes that a copy does not have, or that belong to the life of the original. `event-type-index` lists each event
# once.
_NOT_COPIED = frozenset(
    {
        "gsi2pk",
        "gsi2sk",
        "fingerprint",
        PENDING_COPIES,
        UNLISTED_PARTITION,
        "claim_id",
        "delivered_at",
        "lease_expires_at",
    }
)


def to_item(
    tenant_id: str,
    place: Place,
    event: NewEvent,
    timestamp_ms: int,
    order_key: str,
    state: EventState,
    expires_at_s: int,
) -> dict[str, Any]:
    """Returns the item of the event in its inbox `default`."""
    index_partition = layout.make_index_partition(tenant_id, DEFAULT_INBOX, place.index_shard)
    item = {
        **layout.event_key(layout.make_partition(tenant_id, place.table_shard), event.event_id),
        "gsi1pk": text(index_partition),
        **_without_nulls(state.attributes()),
        "tenant_id": text(tenant_id),
        "event_id": text(event.event_id),
        "timestamp": number(timestamp_ms),
        "payload": payload_attribute(event.payload),
        "payload_bytes": number(len(event.payload)),
        "ttl": number(expires_at_s),
    }
    if event.event_type is not None:
        item["event_type"] = text(event.event_type)
        item |= layout.type_index_keys(index_partition, event.event_type, order_key)
    if event.fingerprint is not None:
        item["fingerprint"] = {"B": event.fingerprint}
    return item


def copy_for(inbox: str, item: Item, state: EventState) -> dict[str, Any]:
    """Returns the item of the event's copy in a named inbox."""
    copied = {name: value for name, value in item.items() if name not in _NOT_COPIED}
    tenant_id, event_id = item["tenant_id"]["S"], item["event_id"]["S"]
    return {
        **copied,
        **_without_nulls(state.attributes()),
        **layout.event_key(item["pk"]["S"], event_id, inbox),
        "gsi1pk": text(layout.index_partition_of_copy(tenant_id, inbox, index_partition_of(item))),
    }


def index_partition_of(item: Item) -> str:
    """Returns the partition of `status-index` that lists the event unless it was delivered."""
    partition: str = item.get("gsi1pk", item.get(UNLISTED_PARTITION))["S"]
    return partition


def _without_nulls(attributes: Item) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if "NULL" not in value}


def is_too_large(item: Item) -> bool:
    return len(item["payload"].get("B", b"")) > MAX_PAYLOAD_BYTES


def is_expired(item: Item, now_ms: int) -> bool:
    return int(item["ttl"]["N"]) <= now_ms // 1000


def to_known_event(item: Item) -> KnownEvent:
    """Takes an item or an entry of `status-index`."""
    return KnownEvent(
        partition=item["pk"]["S"],
        sort_key=item["sk"]["S"],
        index_partition=index_partition_of(item),
        is_listed="gsi1pk" in item,
        status_key=item["gsi1sk"]["S"],
        order_key=layout.order_key_of(item),
        deliveries=int(item["deliveries"]["N"]),
        lease_state=lease_state_of(item),
        payload_bytes=int(item["payload_bytes"]["N"]),
        event_type=text_in(item, "event_type"),
    )


def to_event(item: Item, now_ms: int, max_deliveries: int) -> Event:
    status = effective_state(item, now_ms, max_deliveries).status
    is_leased = status is Status.LEASED
    return Event(
        event_id=item["event_id"]["S"],
        event_type=text_in(item, "event_type"),
        timestamp_ms=int(item["timestamp"]["N"]),
        status=status,
        deliveries=int(item["deliveries"]["N"]),
        delivered_at_ms=number_in(item, "delivered_at") or None,
        payload=payload_of(item["payload"]),
        inbox=layout.inbox_of(item),
        lease=Lease(item["claim_id"]["S"], number_in(item, "lease_expires_at")) if is_leased else None,
    )


# Payloads: a native map if DynamoDB returns exactly the same document, compressed JSON otherwise.

_MAX_MAP_BYTES = 1024
# The limit is 32 levels, and the item is the first.
_MAX_MAP_DEPTH = 31
_MAX_DIGITS = 38
# DynamoDB normalizes numbers: no exponent, no trailing zero.
_EXACT_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?")


class _NotExact(Exception):
    """DynamoDB would return a different document."""


class _Number(str):
    """A number as spelled in the JSON."""

    __slots__ = ()


def payload_attribute(payload: bytes) -> dict[str, Any]:
    """Returns a small payload as a native map if DynamoDB keeps it exactly, any other payload compressed."""
    if len(payload) <= _MAX_MAP_BYTES:
        try:
            native = _to_native(_DECODER.decode(payload.decode()), 1)
        except _NotExact:
            pass
        else:
            # As finished JSON: the map's tree would take 100 times the memory of the payload.
            return {"M": exact_json.splice(exact_json.dump(native["M"]))}
    return {"B": zlib.compress(payload)}


def payload_of(attribute: Mapping[str, Any]) -> bytes:
    if "B" in attribute:
        return zlib.decompress(attribute["B"])
    return exact_json.dump(_from_native(attribute))


def _exact_number(literal: str) -> _Number:
    digits = len(literal) - literal.count(".") - literal.count("-")
    if digits > _MAX_DIGITS or literal == "-0" or not _EXACT_NUMBER.fullmatch(literal):
        raise _NotExact
    return _Number(literal)


_DECODER = JSONDecoder(parse_float=_exact_number, parse_int=_exact_number)


def _to_native(value: Any, level: int) -> dict[str, Any]:
    if isinstance(value, _Number):
        return {"N": str(value)}
    if isinstance(value, str):
        return {"S": value}
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    # DynamoDB has no members with an empty name.
    if level > _MAX_MAP_DEPTH or (isinstance(value, dict) and "" in value):
        raise _NotExact
    if isinstance(value, dict):
        return {"M": {name: _to_native(member, level + 1) for name, member in value.items()}}
    return {"L": [_to_native(element, level + 1) for element in value]}


def _from_native(attribute: Mapping[str, Any]) -> Any:
    ((kind, value),) = attribute.items()
    match kind:
        case "M":
            return {name: _from_native(member) for name, member in value.items()}
        case "L":
            return [_from_native(element) for element in value]
        case "N":
            return exact_json.splice(value)
        case "NULL":
            return None
        case _:
            return value
