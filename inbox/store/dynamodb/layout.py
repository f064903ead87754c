"""The names of the tables and indexes, and how every key's value is made. No other file does either."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from inbox.events import Status

Item = Mapping[str, Any]
"""An item as DynamoDB writes it: every value inside its type, `{"S": "text"}`."""

EVENTS = "Events"
TENANT_API_KEYS = "TenantApiKeys"
TENANTS = "Tenants"

STATUS_INDEX = "status-index"
EVENT_TYPE_INDEX = "event-type-index"

_SEPARATOR = "#"
_METADATA = "METADATA"


def text(value: str) -> dict[str, str]:
    return {"S": value}


def number(value: int) -> dict[str, str]:
    return {"N": str(value)}


# A place in the inbox: timestamp and tiebreak, both of fixed width, so that their texts sort as they do.


def place(timestamp_ms: int, tick: int, origin: str) -> str:
    """`tick` orders the events of one millisecond; `origin` keeps two processes from giving out the same place."""
    return f"{timestamp_ms:013d}{_SEPARATOR}{tick:016x}-{origin}"


def copied_place(timestamp_ms: int, number: int) -> str:
    """For an event from another store: the same place each time that it is copied."""
    return place(timestamp_ms, number, "copied")


def status_key(status: Status, its_place: str) -> str:
    return f"{status}{_SEPARATOR}{its_place}"


def status_range(status: Status) -> tuple[str, str]:
    """Between which two texts all keys of a status lie."""
    return f"{status}{_SEPARATOR}", f"{status}{_SEPARATOR}~"


def place_of(item: Item) -> str:
    """The place that an event keeps through its whole life, whatever its status."""
    key: str = item["gsi1sk"]["S"]
    return key.split(_SEPARATOR, 1)[1]


# A tenant's partitions: one, or one for each write shard.


def partition(tenant_id: str, shard: int | None = None) -> str:
    return tenant_id if shard is None else f"{tenant_id}{_SEPARATOR}{shard}"


def shard_of(event_id: str, shards: int) -> int:
    """The same for the same id, so that an event is found again by its id alone."""
    return uuid.UUID(event_id).int % shards


def event_key(its_partition: str, event_id: str) -> dict[str, Any]:
    return {"pk": text(its_partition), "sk": text(event_id)}


def by_id(items: Iterable[Item]) -> dict[str, Item]:
    """Events of one tenant by their ids."""
    return {item["sk"]["S"]: item for item in items}


def key_of(item: Item) -> dict[str, Any]:
    return {"pk": item["pk"], "sk": item["sk"]}


def event_index_keys(its_partition: str, event_type: str | None, status: Status, its_place: str) -> dict[str, Any]:
    keys = {"gsi1pk": text(its_partition), "gsi1sk": text(status_key(status, its_place))}
    if event_type is not None:
        keys |= {"gsi2pk": text(its_partition), "gsi2sk": text(f"{event_type}{_SEPARATOR}{its_place}")}
    return keys


def api_key_key(key_hash: str) -> dict[str, Any]:
    return {"pk": text(key_hash), "sk": text("meta")}


def tenant_key(tenant_id: str) -> dict[str, Any]:
    return {"PK": text(f"TENANT{_SEPARATOR}{tenant_id}"), "SK": text(_METADATA)}


def key_of_tenant_key(tenant_id: str, key_id: str) -> dict[str, Any]:
    """An entry among the tenant's own items for each of its keys, by which they are listed."""
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(f"{KEYS_OF_TENANT}{key_id}")}


def key_id_key(key_id: str) -> dict[str, Any]:
    """Leads from a key's id to its hash, by which it is revoked."""
    return {"PK": text(f"KEY{_SEPARATOR}{key_id}"), "SK": text(_METADATA)}


KEYS_OF_TENANT = f"KEY{_SEPARATOR}"
IS_TENANT = {":metadata": text(_METADATA), ":tenant": text(f"TENANT{_SEPARATOR}")}

# Not a tenant's id: nothing is ever stored here. Writing to it, on a condition that cannot hold, tries the table.
NOWHERE = event_key(f"{_SEPARATOR}nowhere", "nowhere")
