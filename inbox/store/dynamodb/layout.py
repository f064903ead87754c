"""Names of tables and indexes, and the format of every key. No other file builds or parses a key."""

import re
import uuid
from collections.abc import Iterable
from datetime import datetime
from typing import Any

# Keys that the authorizer reads too. It ships without this package.
from authorizer.items import ACTIVE, METADATA
from authorizer.items import TENANT_API_KEYS as TENANT_API_KEYS
from authorizer.items import TENANTS as TENANTS
from authorizer.items import Item as Item
from authorizer.items import api_key_key as api_key_key
from authorizer.items import tenant_key as tenant_key
from inbox.domain.events import DEFAULT_INBOX, Status, attempt_digest
from inbox.domain.stats import Span
from inbox.domain.timestamps import format_timestamp

EVENTS = "Events"

STATUS_INDEX = "status-index"
EVENT_TYPE_INDEX = "event-type-index"
EMAIL_INDEX = "EmailIndex"
TENANT_STATUS_INDEX = "TenantStatusIndex"
ACTIVE_INDEX = "ActiveIndex"
_TENANT_INDEXES = frozenset({EMAIL_INDEX, TENANT_STATUS_INDEX, ACTIVE_INDEX})
_EVENT_INDEX_PARTITION_KEYS = {STATUS_INDEX: "gsi1pk", EVENT_TYPE_INDEX: "gsi2pk"}

_SEPARATOR = "#"
_AFTER_ALL = "~"
_AFTER_DIGITS = ":"
_MAX_TIMESTAMP = 10**13 - 1

Range = tuple[str, str]
"""The first and the last sort key of a query."""


def text(value: str) -> dict[str, str]:
    return {"S": value}


def number(value: int) -> dict[str, str]:
    return {"N": str(value)}


def number_in(item: Item, name: str) -> int:
    """Returns the number, or 0 if the item does not have it."""
    return int(item[name]["N"]) if "N" in item.get(name, {}) else 0


def text_in(item: Item, name: str) -> str | None:
    return item[name]["S"] if "S" in item.get(name, {}) else None


# Order keys: the position of an event in its inbox, which never changes. Timestamp and tiebreak have a fixed width, so
# that the keys sort in the order of the events.

_ORDER_KEY = re.compile(rf"[0-9]{{13}}{_SEPARATOR}[0-9a-f]{{16}}-[0-9a-z]{{6}}", re.ASCII)


def make_order_key(timestamp_ms: int, sequence: int, origin: str) -> str:
    """Returns an order key. `sequence` orders the events of one millisecond; `origin` differs between processes."""
    return f"{timestamp_ms:013d}{_SEPARATOR}{sequence:016x}-{origin}"


def timestamp_ms_of(order_key: str) -> int:
    return int(order_key.partition(_SEPARATOR)[0])


def parse_tiebreak(order_key: str) -> tuple[int, str]:
    """Returns the sequence and the origin."""
    sequence, _, origin = order_key.partition(_SEPARATOR)[2].partition("-")
    return int(sequence, 16), origin


def is_order_key(value: str) -> bool:
    return _ORDER_KEY.fullmatch(value) is not None


def order_key_of(item: Item) -> str:
    key: str = item["gsi1sk"]["S"]
    return _SEPARATOR.join(key.split(_SEPARATOR)[-2:])


def order_key_range(since_ms: int | None, until_ms: int | None) -> Range:
    first = "" if since_ms is None else f"{min(since_ms, _MAX_TIMESTAMP):013d}"
    return first, _AFTER_ALL if until_ms is None else f"{min(until_ms, _MAX_TIMESTAMP):013d}"


# `status-index` sorts by status and order key, but leased and delayed events by the end of their lease or delay.

# Stored in items, so it must not change.
_DELAYED = "held"


def make_status_key(status: Status, order_key: str) -> str:
    return f"{status}{_SEPARATOR}{order_key}"


def make_leased_key(until_ms: int, order_key: str) -> str:
    return f"{Status.LEASED}{_SEPARATOR}{until_ms:013d}{_SEPARATOR}{order_key}"


def make_delayed_key(until_ms: int, order_key: str) -> str:
    """Returns the status key of an event released with a delay.

    Sorts among leased events, so that one query finds both.
    """
    return make_leased_key(until_ms, f"{_DELAYED}{_SEPARATOR}{order_key}")


# Since schema version 2, leased events keep the key `undelivered#…`. The attribute `lost_leases`, which the index
# projects, then also has the end of the lease.


def make_lease_state(lost_leases: int, until_ms: int) -> str:
    return f"{lost_leases}{_SEPARATOR}{Status.LEASED}{_SEPARATOR}{until_ms}"


def lost_leases_in(lease_state: str) -> int:
    return int(lease_state.partition(_SEPARATOR)[0] or 0)


def lease_end_in(lease_state: str) -> int | None:
    _, separator, lease = lease_state.partition(_SEPARATOR)
    return int(lease.partition(_SEPARATOR)[2]) if separator else None


def lease_state_attribute(lease_state: str) -> dict[str, str]:
    return text(lease_state) if _SEPARATOR in lease_state else {"N": lease_state}


def is_leased_key(status_key: str) -> bool:
    """Returns False for an event released with a delay."""
    status, _, marker, *_ = status_key.split(_SEPARATOR)
    return status == Status.LEASED and marker != _DELAYED


def unavailable_until_ms(status_key: str) -> int | None:
    """Returns the end of the lease or delay, or None for any other status."""
    status, until_ms, *_ = status_key.split(_SEPARATOR)
    return int(until_ms) if status == Status.LEASED else None


def status_of(status_key: str) -> Status:
    return Status(status_key.partition(_SEPARATOR)[0])


def is_undelivered_key(status_key: str) -> bool:
    return status_key.partition(_SEPARATOR)[0] == Status.UNDELIVERED


def status_range(status: Status, first: str = "", last: str = _AFTER_ALL) -> Range:
    return f"{status}{_SEPARATOR}{first}", f"{status}{_SEPARATOR}{last}"


def expired_lease_range(now_ms: int) -> Range:
    """Returns the range of leases and delays that have ended by `now_ms`."""
    return status_range(Status.LEASED, "", f"{now_ms + 1:013d}")


def last_undelivered_key(until_ms: int | None) -> str:
    """Returns the end of the range of undelivered events up to `until_ms`, or of all if it is None."""
    first, last = status_range(Status.UNDELIVERED)
    return last if until_ms is None else f"{first}{until_ms + 1:013d}"


def event_type_range(event_type: str, order_keys: Range) -> Range:
    first, last = order_keys
    return f"{event_type}{_SEPARATOR}{first}", f"{event_type}{_SEPARATOR}{last}"


def order_key_in_type_index(item: Item) -> str:
    key: str = item["gsi2sk"]["S"]
    return key.split(_SEPARATOR, 1)[1]


# Partitions: a tenant has one in the table, or one for each shard and some for events with idempotency keys. The index
# has one partition for each shard and inbox.

UNSHARDED = ""
# What `shard_suffix`, `old_shard_suffix` or `keyed_suffix` returns.
_SHARD_SUFFIX = re.compile(rf"{_SEPARATOR}{_SEPARATOR}.*|{_SEPARATOR}[0-9]+", re.ASCII | re.DOTALL)


def shard_suffix(shard: int, series: int = 0) -> str:
    """Returns the end of a partition's name. No inbox has an empty name, so no inbox has the partition `acme##3`."""
    return f"{_SEPARATOR}{_SEPARATOR}{series}.{shard}" if series else f"{_SEPARATOR}{_SEPARATOR}{shard}"


def keyed_suffix(partition: int) -> str:
    """Returns the end of the name of a table partition for events with idempotency keys."""
    return f"{_SEPARATOR}{_SEPARATOR}k{partition}"


def old_shard_suffix(shard: int) -> str:
    """Returns the suffix that earlier releases used: shard 3 of `default` shares `acme#3` with the inbox `3`."""
    return f"{_SEPARATOR}{shard}"


def shard_number(event_id: str, shards: int) -> int:
    """Returns the number of the event's shard, computed from its ID alone so that a lookup by ID needs no search."""
    return uuid.UUID(event_id).int % shards


def make_partition(tenant_id: str, shard: str = UNSHARDED) -> str:
    return f"{tenant_id}{shard}"


def make_index_partition(tenant_id: str, inbox: str, shard: str = UNSHARDED) -> str:
    return make_partition(tenant_id if inbox == DEFAULT_INBOX else f"{tenant_id}{_SEPARATOR}{inbox}", shard)


def index_partition_of_copy(tenant_id: str, inbox: str, default_partition: str) -> str:
    """Returns the inbox's partition in the shard of `default_partition`."""
    return f"{tenant_id}{_SEPARATOR}{inbox}{default_partition.removeprefix(tenant_id)}"


def is_own_entry(index: str, entry: Item) -> bool:
    """Returns True if the entry belongs where the index lists it: to that tenant and, in `Events`, to that inbox.

    A role with permission to write one tenant's items can give them the index keys of another tenant.
    """
    if index in _TENANT_INDEXES:
        tenant_id = text_in(entry, "tenant_id")
        return tenant_id is not None and {"PK": entry["PK"], "SK": entry["SK"]} == tenant_key(tenant_id)
    listed_in: str = entry[_EVENT_INDEX_PARTITION_KEYS[index]]["S"]
    unsharded = make_index_partition(tenant_of(entry), inbox_of(entry))
    return listed_in == unsharded or (
        listed_in.startswith(unsharded) and _SHARD_SUFFIX.fullmatch(listed_in, len(unsharded)) is not None
    )


def tenant_of(item: Item) -> str:
    """Returns the tenant of an event by its key. The attribute `tenant_id` may have any value, see `is_own_entry`."""
    partition: str = item["pk"]["S"]
    return partition.partition(_SEPARATOR)[0]


_PAYLOAD = ":payload"


def event_key(partition: str, event_id: str, inbox: str = DEFAULT_INBOX) -> dict[str, Any]:
    return {"pk": text(partition), "sk": text(make_sort_key(event_id, inbox))}


def make_sort_key(event_id: str, inbox: str) -> str:
    """Returns a key that sorts copies right behind the event, so that one query finds all of them."""
    return event_id if inbox == DEFAULT_INBOX else f"{event_id}{_SEPARATOR}{inbox}"


def make_payload_sort_key(event_id: str, fingerprint: bytes | None) -> str:
    """Returns the sort key of a payload. No inbox has its name, which differs for different events under one key."""
    return make_sort_key(event_id, f"{_PAYLOAD}{'' if fingerprint is None else fingerprint.hex()[:16]}")


def is_payload(item: Item) -> bool:
    """Returns True for an item with the payload of an event."""
    return inbox_of(item).startswith(_PAYLOAD)


def inbox_of(item: Item) -> str:
    return inbox_of_sort_key(item["sk"]["S"])


def inbox_of_sort_key(sort_key: str) -> str:
    return sort_key.partition(_SEPARATOR)[2] or DEFAULT_INBOX


def event_id_of(sort_key: str) -> str:
    return sort_key.partition(_SEPARATOR)[0]


def by_sort_key(items: Iterable[Item]) -> dict[str, Item]:
    """Returns the items by sort key, which is unique across tenants, as event IDs are."""
    return {item["sk"]["S"]: item for item in items}


def key_of(item: Item) -> dict[str, Any]:
    return {"pk": item["pk"], "sk": item["sk"]}


def type_index_keys(index_partition: str, event_type: str, order_key: str) -> dict[str, Any]:
    return {"gsi2pk": text(index_partition), "gsi2sk": text(f"{event_type}{_SEPARATOR}{order_key}")}


ABSENT_EVENT_KEY = event_key(f"{_SEPARATOR}nowhere", "nowhere")
"""No tenant has this partition, so a conditional write to it checks that the table works, and never changes it."""


# The registry: tenants, the items in their partitions, and lookup items.

SCHEMA_KEY = {"PK": text("SCHEMA"), "SK": text(METADATA)}
"""The key of the item with the schema version of all tables."""

_AUDIT_PREFIX = f"AUDIT{_SEPARATOR}"
TENANT_KEYS_PREFIX = f"KEY{_SEPARATOR}"
NAMED_INBOXES_PREFIX = f"INBOX{_SEPARATOR}"
_INBOX_NAMES = "INBOXES"
# Not an item INBOX#default, which an earlier release would treat as a named inbox. It could not write the copies.
DEFAULT_ENABLED = "default_enabled"
"""An attribute of the item with the inbox names: False while `default` is disabled."""


def tenant_id_of(item: Item) -> str:
    """Returns the tenant whose partition contains the item."""
    partition: str = item["PK"]["S"]
    return partition.removeprefix(tenant_key("")["PK"]["S"])


def prefix_range(prefix: str) -> Range:
    return prefix, f"{prefix}{_AFTER_ALL}"


INBOX_ITEMS = prefix_range("INBOX")
"""The range of a tenant's inboxes and of the item with their names."""


def tenant_items_query(tenant_id: str, sort_keys: Range) -> dict[str, Any]:
    """Returns the parameters of a query for items in the tenant's partition."""
    first, last = sort_keys
    return {
        "KeyConditionExpression": "PK = :tenant AND SK BETWEEN :first AND :last",
        "ExpressionAttributeValues": {
            ":tenant": tenant_key(tenant_id)["PK"],
            ":first": text(first),
            ":last": text(last),
        },
    }


def creation_date_range(since_ms: int | None, last_ms: int | None) -> Range:
    """Returns a range that includes both ends."""
    return format_timestamp(since_ms or 0), _AFTER_ALL if last_ms is None else format_timestamp(last_ms)


def active_key(active: bool) -> str:
    """Returns text, because the key of an index cannot be a boolean."""
    return ACTIVE if active else "false"


def email_item_key(email_key: str) -> dict[str, Any]:
    """Returns the key of the item that maps an email address to its tenant.

    An index would not keep two tenants from having the same email address.
    """
    return {"PK": text(f"EMAIL{_SEPARATOR}{email_key}"), "SK": text(METADATA)}


def audit_key(tenant_id: str, entry_number: int) -> dict[str, Any]:
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(f"{_AUDIT_PREFIX}{entry_number:010d}")}


def audit_range(before: int | None) -> Range:
    """Returns the range of the entries with a number below `before`."""
    return _AUDIT_PREFIX, f"{_AUDIT_PREFIX}{_AFTER_ALL if before is None else f'{before - 1:010d}'}"


def tenant_api_key_item_key(tenant_id: str, key_id: str) -> dict[str, Any]:
    """Returns the key of the item that lists an API key in its tenant's partition."""
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(f"{TENANT_KEYS_PREFIX}{key_id}")}


def key_id_item_key(key_id: str) -> dict[str, Any]:
    """Returns the key of the item that maps the ID of an API key to its hash."""
    return {"PK": text(f"KEY{_SEPARATOR}{key_id}"), "SK": text(METADATA)}


def inbox_key(tenant_id: str, name: str) -> dict[str, Any]:
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(f"{NAMED_INBOXES_PREFIX}{name}")}


def inbox_names_key(tenant_id: str) -> dict[str, Any]:
    """Returns the key of the item with the names of a tenant's inboxes and the state of `default`."""
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(_INBOX_NAMES)}


def is_inbox(item: Item) -> bool:
    """Returns False for the item with the names, which is among `INBOX_ITEMS` as well."""
    return bool(item["SK"] != text(_INBOX_NAMES))


def attempt_key(tenant_id: str, inbox: str, attempt: str) -> dict[str, Any]:
    """Returns a key with a hash of the attempt ID, which the client chooses."""
    sort_key = f"ATTEMPT{_SEPARATOR}{inbox}{_SEPARATOR}{attempt_digest(attempt)}"
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(sort_key)}


def claim_token_key(tenant_id: str, inbox: str) -> dict[str, Any]:
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(f"CLAIM{_SEPARATOR}{inbox}")}


# Counters: an item for each hour and each day of an inbox, with an attribute for each count of an event type.

COUNTERS_PREFIX = f"METRICS{_SEPARATOR}"
UNDELIVERED_COUNT = "undelivered"
"""An attribute of a day's item: how many of the events received on that day are undelivered."""


def counter_key(tenant_id: str, inbox: str, span: Span, start_ms: int) -> dict[str, Any]:
    """Returns a key that contains only the time for `default`, and the name before the time for a named inbox."""
    sort_key = _counter_prefix(inbox, span) + _counter_time(span, start_ms)
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(sort_key)}


def counter_range(inbox: str, span: Span, since_ms: int) -> Range:
    """Returns a range that, for `default`, also contains the keys of inboxes with names that begin with a digit."""
    prefix = _counter_prefix(inbox, span)
    return prefix + _counter_time(span, since_ms), prefix + _AFTER_DIGITS


def parse_counter_key(item: Item) -> tuple[str, Span, int]:
    """Returns the inbox, the span and its start in milliseconds."""
    _, span_name, *inbox, time = item["SK"]["S"].split(_SEPARATOR)
    span = Span[span_name]
    start = f"{time}:00+00:00" if span is Span.HOUR else f"{time}T00:00+00:00"
    return (inbox or [DEFAULT_INBOX])[0], span, int(datetime.fromisoformat(start).timestamp()) * 1000


def _counter_prefix(inbox: str, span: Span) -> str:
    prefix = f"{COUNTERS_PREFIX}{span.name}{_SEPARATOR}"
    return prefix if inbox == DEFAULT_INBOX else f"{prefix}{inbox}{_SEPARATOR}"


def _counter_time(span: Span, start_ms: int) -> str:
    return format_timestamp(start_ms)[: len("YYYY-MM-DDTHH") if span is Span.HOUR else len("YYYY-MM-DD")]


def counter_ttl(span: Span, start_ms: int) -> dict[str, str]:
    return number((start_ms + span.ms + span.kept_ms) // 1000)


def count_attribute(name: str, event_type: str | None) -> str:
    return name if event_type is None else f"{name}{_SEPARATOR}{event_type}"


def parse_count_attribute(attribute: str) -> tuple[str, str | None]:
    """Returns the name and the event type of a count; None for counts that are not kept by type."""
    name, separator, event_type = attribute.partition(_SEPARATOR)
    return name, event_type if separator else None


def event_types_in(attributes: Iterable[str]) -> set[str]:
    return {event_type for name in attributes if (event_type := parse_count_attribute(name)[1]) is not None}
