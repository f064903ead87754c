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
EVENT_INDEXES = frozenset({STATUS_INDEX, EVENT_TYPE_INDEX})
EMAIL_INDEX = "EmailIndex"
TENANT_STATUS_INDEX = "TenantStatusIndex"
ACTIVE_INDEX = "ActiveIndex"

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


# Order keys: the position of an event in its inbox, which it keeps for life. Timestamp and tiebreak have a fixed width,
# so that the texts sort in the order of the events.

_ORDER_KEY = re.compile(rf"[0-9]{{13}}{_SEPARATOR}[0-9a-f]{{16}}-[0-9a-z]{{6}}", re.ASCII)


def order_key(timestamp_ms: int, sequence: int, origin: str) -> str:
    """`sequence` orders the events of one millisecond; `origin` keeps the keys of two processes apart."""
    return f"{timestamp_ms:013d}{_SEPARATOR}{sequence:016x}-{origin}"


def timestamp_of(its_order_key: str) -> int:
    return int(its_order_key.partition(_SEPARATOR)[0])


def is_order_key(text: str) -> bool:
    return _ORDER_KEY.fullmatch(text) is not None


def order_key_of(item: Item) -> str:
    key: str = item["gsi1sk"]["S"]
    return _SEPARATOR.join(key.split(_SEPARATOR)[-2:])


def order_key_range(since_ms: int | None, until_ms: int | None) -> Range:
    first = "" if since_ms is None else f"{min(since_ms, _MAX_TIMESTAMP):013d}"
    return first, _AFTER_ALL if until_ms is None else f"{min(until_ms, _MAX_TIMESTAMP):013d}"


# `status-index` sorts by status and order key; leased and delayed events by the end of their lease or delay.

# Stored: not to be changed.
_DELAYED = "held"


def status_key(status: Status, its_order_key: str) -> str:
    return f"{status}{_SEPARATOR}{its_order_key}"


def leased_key(until_ms: int, its_order_key: str) -> str:
    return f"{Status.LEASED}{_SEPARATOR}{until_ms:013d}{_SEPARATOR}{its_order_key}"


def delayed_key(until_ms: int, its_order_key: str) -> str:
    """For an event released with a delay. It is sorted among the leased ones, so that one query finds both."""
    return leased_key(until_ms, f"{_DELAYED}{_SEPARATOR}{its_order_key}")


def is_leased_key(its_status_key: str) -> bool:
    """Returns False for an event released with a delay."""
    status, _, after_time, *_ = its_status_key.split(_SEPARATOR)
    return status == Status.LEASED and after_time != _DELAYED


def unavailable_until(its_status_key: str) -> int | None:
    """Returns the end of the lease or delay, and None for any other status."""
    status, time, *_ = its_status_key.split(_SEPARATOR)
    return int(time) if status == Status.LEASED else None


def is_undelivered_key(its_status_key: str) -> bool:
    return its_status_key.partition(_SEPARATOR)[0] == Status.UNDELIVERED


def status_range(status: Status, first: str = "", last: str = _AFTER_ALL) -> Range:
    return f"{status}{_SEPARATOR}{first}", f"{status}{_SEPARATOR}{last}"


def expired_lease_range(now_ms: int) -> Range:
    """Returns the range of leases and delays that have ended by `now_ms`."""
    return status_range(Status.LEASED, "", f"{now_ms + 1:013d}")


def event_type_range(event_type: str, order_keys: Range) -> Range:
    first, last = order_keys
    return f"{event_type}{_SEPARATOR}{first}", f"{event_type}{_SEPARATOR}{last}"


def order_key_in_type_index(item: Item) -> str:
    key: str = item["gsi2sk"]["S"]
    return key.split(_SEPARATOR, 1)[1]


# Partitions: a tenant has one in the table, or one for each shard. The index has as many for each inbox.

UNSHARDED = ""


def shard_suffix(number: int) -> str:
    """No inbox has an empty name, so `acme##3` is never an inbox's partition."""
    return f"{_SEPARATOR}{_SEPARATOR}{number}"


def old_shard_suffix(number: int) -> str:
    """Returns the suffix that earlier releases used: shard 3 of `default` shares `acme#3` with the inbox `3`."""
    return f"{_SEPARATOR}{number}"


def shard_number(event_id: str, shards: int) -> int:
    """Depends on the ID alone, so that an event is found by its ID."""
    return uuid.UUID(event_id).int % shards


def partition(tenant_id: str, shard: str = UNSHARDED) -> str:
    return f"{tenant_id}{shard}"


def index_partition(tenant_id: str, inbox: str, shard: str = UNSHARDED) -> str:
    return partition(tenant_id if inbox == DEFAULT_INBOX else f"{tenant_id}{_SEPARATOR}{inbox}", shard)


def index_partition_of_copy(tenant_id: str, inbox: str, default_partition: str) -> str:
    """Returns the inbox's partition in the shard of `default_partition`."""
    return f"{tenant_id}{_SEPARATOR}{inbox}{default_partition.removeprefix(tenant_id)}"


def own_entries(its_index_partition: str, entries: Iterable[Item]) -> list[Item]:
    """Returns the index entries whose items are the tenant's own.

    A role that may write items of one tenant can give them any index key, another tenant's too.
    """
    tenant_id = _tenant_of(its_index_partition)
    return [entry for entry in entries if _tenant_of(entry["pk"]["S"]) == tenant_id]


def _tenant_of(its_partition: str) -> str:
    return its_partition.partition(_SEPARATOR)[0]


# Events.


def event_key(its_partition: str, event_id: str, inbox: str = DEFAULT_INBOX) -> dict[str, Any]:
    return {"pk": text(its_partition), "sk": text(sort_key(event_id, inbox))}


def sort_key(event_id: str, inbox: str) -> str:
    """Copies in named inboxes sort right behind the event, so that one query finds all of them."""
    return event_id if inbox == DEFAULT_INBOX else f"{event_id}{_SEPARATOR}{inbox}"


def inbox_of(item: Item) -> str:
    sort_key: str = item["sk"]["S"]
    return sort_key.partition(_SEPARATOR)[2] or DEFAULT_INBOX


def event_id_of(sort_key: str) -> str:
    return sort_key.partition(_SEPARATOR)[0]


def event_type_of(item: Item) -> str | None:
    return text_in(item, "event_type")


def by_sort_key(items: Iterable[Item]) -> dict[str, Item]:
    """Event IDs are unique across tenants, so sort keys are too."""
    return {item["sk"]["S"]: item for item in items}


def key_of(item: Item) -> dict[str, Any]:
    return {"pk": item["pk"], "sk": item["sk"]}


def type_index_keys(its_index_partition: str, event_type: str, its_order_key: str) -> dict[str, Any]:
    return {"gsi2pk": text(its_index_partition), "gsi2sk": text(f"{event_type}{_SEPARATOR}{its_order_key}")}


ABSENT_EVENT_KEY = event_key(f"{_SEPARATOR}nowhere", "nowhere")
"""No tenant has this partition. A conditional write to it tries the table and never succeeds."""


# The registry: tenants, the items in their partitions, and the items that lead to them.

_AUDIT_PREFIX = f"AUDIT{_SEPARATOR}"
TENANT_KEYS_PREFIX = f"KEY{_SEPARATOR}"
NAMED_INBOXES_PREFIX = f"INBOX{_SEPARATOR}"
_INBOX_NAMES = "INBOXES"
# Not in an item INBOX#default: an earlier release would take it for a named inbox and fail to write its copies.
DEFAULT_ENABLED = "default_enabled"
"""In the item with the names: False while `default` is disabled."""


def prefix_range(prefix: str) -> Range:
    return prefix, f"{prefix}{_AFTER_ALL}"


INBOX_ITEMS = prefix_range("INBOX")
"""A tenant's inboxes and the item with their names."""


def tenant_items(tenant_id: str, sort_keys: Range) -> dict[str, Any]:
    """Returns the condition of a query for items in the tenant's partition."""
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
    """Both ends are included."""
    return format_timestamp(since_ms or 0), _AFTER_ALL if last_ms is None else format_timestamp(last_ms)


def active_key(active: bool) -> str:
    """The key of an index cannot be a boolean."""
    return ACTIVE if active else "false"


def email_item_key(email_key: str) -> dict[str, Any]:
    """Leads from an e-mail to its tenant. An index would not keep two tenants from having the same e-mail."""
    return {"PK": text(f"EMAIL{_SEPARATOR}{email_key}"), "SK": text(METADATA)}


def audit_key(tenant_id: str, number: int) -> dict[str, Any]:
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(f"{_AUDIT_PREFIX}{number:010d}")}


def audit_range(before: int | None) -> Range:
    """Returns the range of the entries with a number below `before`."""
    return _AUDIT_PREFIX, f"{_AUDIT_PREFIX}{_AFTER_ALL if before is None else f'{before - 1:010d}'}"


def key_of_tenant_key(tenant_id: str, key_id: str) -> dict[str, Any]:
    """Lists an API key in its tenant's partition."""
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(f"{TENANT_KEYS_PREFIX}{key_id}")}


def key_id_key(key_id: str) -> dict[str, Any]:
    """Leads from the ID of an API key to its hash."""
    return {"PK": text(f"KEY{_SEPARATOR}{key_id}"), "SK": text(METADATA)}


def inbox_key(tenant_id: str, name: str) -> dict[str, Any]:
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(f"{NAMED_INBOXES_PREFIX}{name}")}


def inbox_names_key(tenant_id: str) -> dict[str, Any]:
    """The item with the names of a tenant's inboxes and the state of `default`."""
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(_INBOX_NAMES)}


def is_inbox(item: Item) -> bool:
    """Returns False for the item with the names, which is among `INBOX_ITEMS` as well."""
    return bool(item["SK"] != text(_INBOX_NAMES))


def attempt_key(tenant_id: str, inbox: str, attempt: str) -> dict[str, Any]:
    """The client chooses the attempt ID, so only its hash becomes part of a key."""
    sort_key = f"ATTEMPT{_SEPARATOR}{inbox}{_SEPARATOR}{attempt_digest(attempt)}"
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(sort_key)}


# Counters: an item for each hour and each day of an inbox, with an attribute for each count and event type.

COUNTERS_PREFIX = f"METRICS{_SEPARATOR}"
UNDELIVERED_COUNT = "undelivered"
"""On a day's item: how many of the events received on that day are undelivered."""


def counter_key(tenant_id: str, inbox: str, span: Span, start_ms: int) -> dict[str, Any]:
    """The keys of `default` have the time alone, those of named inboxes the name before it."""
    sort_key = _counter_prefix(inbox, span) + _counter_time(span, start_ms)
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(sort_key)}


def counter_range(inbox: str, span: Span, since_ms: int) -> Range:
    """The range of `default` also contains the keys of inboxes whose names begin with a digit."""
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
