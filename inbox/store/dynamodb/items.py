"""Events as items, and back."""

import re
import zlib
from collections.abc import Mapping
from json import JSONDecoder
from typing import Any

from inbox.domain import exact_json
from inbox.domain.events import DEFAULT_INBOX, Event, Lease, NewEvent, Status
from inbox.store.dynamodb.event_states import Entry, State, number_in, standing
from inbox.store.dynamodb.layout import (
    UNSHARDED,
    Item,
    event_index_keys,
    event_key,
    event_type_of,
    inbox_of,
    index_partition,
    index_partition_beside,
    number,
    partition,
    place_of,
    text,
)

_LARGEST_MAP_BYTES = 1024
# DynamoDB takes 32 levels, and the item itself is the first.
_DEEPEST_MAP = 31
_MAX_DIGITS = 38
# DynamoDB computes with numbers and writes them in one way only: no exponent, no zero that could be left out.
_EXACT_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?")


class _NotExact(Exception):
    """DynamoDB would give something else back."""


def payload_attribute(payload: bytes) -> dict[str, Any]:
    """Returns the attribute with a native map as finished JSON: its tree takes 100 times the memory of the payload."""
    if len(payload) <= _LARGEST_MAP_BYTES:
        try:
            native = _native(_DECODER.decode(payload.decode()), 1)
        except _NotExact:
            pass
        else:
            return {"M": exact_json.splice(exact_json.dump(native["M"]))}
    return {"B": zlib.compress(payload)}


def payload_of(attribute: Mapping[str, Any]) -> bytes:
    if "B" in attribute:
        return zlib.decompress(attribute["B"])
    return exact_json.dump(_plain(attribute))


class _Number(str):
    """The text of a number, as it stands in the JSON."""

    __slots__ = ()


def _exact(text: str) -> _Number:
    digits = len(text) - text.count(".") - text.count("-")
    if digits > _MAX_DIGITS or text == "-0" or not _EXACT_NUMBER.fullmatch(text):
        raise _NotExact
    return _Number(text)


def _native(value: Any, level: int) -> dict[str, Any]:
    if isinstance(value, _Number):
        return {"N": str(value)}
    if isinstance(value, str):
        return {"S": value}
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    # DynamoDB has no member without a name.
    if level > _DEEPEST_MAP or (isinstance(value, dict) and "" in value):
        raise _NotExact
    if isinstance(value, dict):
        return {"M": {name: _native(member, level + 1) for name, member in value.items()}}
    return {"L": [_native(element, level + 1) for element in value]}


def _plain(attribute: Mapping[str, Any]) -> Any:
    ((kind, value),) = attribute.items()
    match kind:
        case "M":
            return {name: _plain(member) for name, member in value.items()}
        case "L":
            return [_plain(element) for element in value]
        case "N":
            return exact_json.splice(value)
        case "NULL":
            return None
        case _:
            return value


_DECODER = JSONDecoder(parse_float=_exact, parse_int=_exact)


# DynamoDB takes 400 KB. The rest of an item, and what a claim adds to it, stays well below 4.
MAX_PAYLOAD_BYTES = 396 * 1024

PENDING_COPIES = "pending_copies"
"""Names of inboxes, on an event with a key whose copies may not be written yet."""


def to_item(
    tenant_id: str, shard: str, event: NewEvent, timestamp_ms: int, place: str, state: State, expires_at_s: int
) -> dict[str, Any]:
    """An event in its inbox `default`."""
    # An event with a key is looked for under its id alone, so that stays the same whatever the number of shards. It is
    # the index that has to be spread: ids are random, and DynamoDB splits a table's partition between them by itself.
    home = partition(tenant_id, shard if event.fingerprint is None else UNSHARDED)
    item = {
        **event_key(home, event.event_id),
        **event_index_keys(
            index_partition(tenant_id, DEFAULT_INBOX, shard), DEFAULT_INBOX, event.event_type, state.status_key, place
        ),
        **{name: value for name, value in state.attributes().items() if "NULL" not in value},
        "tenant_id": text(tenant_id),
        "event_id": text(event.event_id),
        "timestamp": number(timestamp_ms),
        "payload": payload_attribute(event.payload),
        "payload_bytes": number(len(event.payload)),
        "ttl": number(expires_at_s),
    }
    if event.event_type is not None:
        item["event_type"] = text(event.event_type)
    if event.fingerprint is not None:
        item["fingerprint"] = {"B": event.fingerprint}
    return item


def copy_for(inbox: str, item: Item, state: State) -> dict[str, Any]:
    """What a named inbox has of an event."""
    kept = {name: value for name, value in item.items() if name not in _OF_THE_EVENT_ALONE}
    tenant_id, event_id = item["tenant_id"]["S"], item["event_id"]["S"]
    return {
        **kept,
        **{name: value for name, value in state.attributes().items() if "NULL" not in value},
        **event_key(item["pk"]["S"], event_id, inbox),
        "gsi1pk": text(index_partition_beside(tenant_id, inbox, item["gsi1pk"]["S"])),
    }


# And what the life of the event itself has left behind; a copy begins its own.
_OF_THE_EVENT_ALONE = frozenset(
    {"gsi2pk", "gsi2sk", "fingerprint", PENDING_COPIES, "claim_id", "delivered_at", "lease_expires_at"}
)


def pending_copies(item: Item) -> list[str]:
    return [name["S"] for name in item[PENDING_COPIES]["L"]]


def is_too_large(item: Item) -> bool:
    return len(item["payload"].get("B", b"")) > MAX_PAYLOAD_BYTES


def to_entry(item: Item) -> Entry:
    """From an item, or from what `status-index` shows of one."""
    return Entry(
        partition=item["pk"]["S"],
        sort_key=item["sk"]["S"],
        status_key=item["gsi1sk"]["S"],
        place=place_of(item),
        deliveries=int(item["deliveries"]["N"]),
        lost_leases=number_in(item, "lost_leases"),
        payload_bytes=int(item["payload_bytes"]["N"]),
        event_type=event_type_of(item),
    )


def to_event(item: Item, now_ms: int, max_deliveries: int) -> Event:
    status = standing(item, now_ms, max_deliveries).status
    is_leased = status is Status.LEASED
    return Event(
        event_id=item["event_id"]["S"],
        event_type=event_type_of(item),
        timestamp_ms=int(item["timestamp"]["N"]),
        status=status,
        deliveries=int(item["deliveries"]["N"]),
        delivered_at_ms=number_in(item, "delivered_at") or None,
        payload=payload_of(item["payload"]),
        inbox=inbox_of(item),
        lease=Lease(item["claim_id"]["S"], number_in(item, "lease_expires_at")) if is_leased else None,
    )


def is_expired(item: Item, now_ms: int) -> bool:
    return int(item["ttl"]["N"]) <= now_ms // 1000
