"""The names of the tables and indexes, and how every key's value is made. No other file does either."""

import re
import uuid
from collections.abc import Iterable
from datetime import datetime
from typing import Any

# What the authorizer has to know stands there, since it ships alone.
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
_HELD = "held"
_PLACE = re.compile(rf"[0-9]{{13}}{_SEPARATOR}[0-9a-f]{{16}}-[0-9a-z]{{6}}", re.ASCII)


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


def timestamp_of(its_place: str) -> int:
    return int(its_place.partition(_SEPARATOR)[0])


def is_place(text: str) -> bool:
    return _PLACE.fullmatch(text) is not None


def place_of(item: Item) -> str:
    """The place that an event keeps through its whole life, whatever its status."""
    key: str = item["gsi1sk"]["S"]
    return _SEPARATOR.join(key.split(_SEPARATOR)[-2:])


def places(since_ms: int | None, until_ms: int | None) -> tuple[str, str]:
    """Between which two texts the places of that time lie."""
    first = "" if since_ms is None else f"{min(since_ms, 10**13 - 1):013d}"
    return first, _AFTER_ALL if until_ms is None else f"{min(until_ms, 10**13 - 1):013d}"


# `status-index`: by status and place, but what is out of reach until some time is sorted by that time.


def status_key(status: Status, its_place: str) -> str:
    return f"{status}{_SEPARATOR}{its_place}"


def leased_key(until_ms: int, its_place: str) -> str:
    return f"{Status.LEASED}{_SEPARATOR}{until_ms:013d}{_SEPARATOR}{its_place}"


def held_key(until_ms: int, its_place: str) -> str:
    """Of an event that waits out the delay of a release: among the leased ones, since it comes back as they do."""
    return leased_key(until_ms, f"{_HELD}{_SEPARATOR}{its_place}")


def is_held(status_key: str) -> bool:
    return status_key.split(_SEPARATOR)[2] == _HELD


def until_of(status_key: str) -> int | None:
    """When the event comes back; None where it is within reach, or delivered, or dead."""
    status, time, *_ = status_key.split(_SEPARATOR)
    return int(time) if status == Status.LEASED else None


def is_waiting(status_key: str) -> bool:
    """Undelivered, and within reach as far as is written down."""
    return status_key.partition(_SEPARATOR)[0] == Status.UNDELIVERED


def status_range(status: Status, first: str = "", last: str = _AFTER_ALL) -> tuple[str, str]:
    """Between which two texts the keys of a status lie, all of them or those of some places."""
    return f"{status}{_SEPARATOR}{first}", f"{status}{_SEPARATOR}{last}"


def back_by(now_ms: int) -> tuple[str, str]:
    """Between which two texts the keys lie of what has come back by then."""
    return status_range(Status.LEASED, "", f"{now_ms + 1:013d}")


def type_range(event_type: str, first: str, last: str) -> tuple[str, str]:
    """The same for `event-type-index`."""
    return f"{event_type}{_SEPARATOR}{first}", f"{event_type}{_SEPARATOR}{last}"


def place_in_type_index(item: Item) -> str:
    key: str = item["gsi2sk"]["S"]
    return key.split(_SEPARATOR, 1)[1]


# A tenant's partitions: one, or one for each write shard, whose suffix they have. The index has some for each inbox.

UNSHARDED = ""


def shard(number: int) -> str:
    """Returns the suffix of a shard's partitions. No inbox has an empty name, so `acme##3` is not an inbox's."""
    return f"{_SEPARATOR}{_SEPARATOR}{number}"


def old_shard(number: int) -> str:
    """Returns the suffix that earlier releases used: shard 3 of `default` shares `acme#3` with the inbox `3`."""
    return f"{_SEPARATOR}{number}"


def partition(tenant_id: str, its_shard: str = UNSHARDED) -> str:
    return f"{tenant_id}{its_shard}"


def index_partition(tenant_id: str, inbox: str, its_shard: str = UNSHARDED) -> str:
    return partition(tenant_id if inbox == DEFAULT_INBOX else f"{tenant_id}{_SEPARATOR}{inbox}", its_shard)


def index_partition_beside(tenant_id: str, inbox: str, of_default: str) -> str:
    """That of a named inbox, in the same shard as one of the default inbox."""
    return f"{tenant_id}{_SEPARATOR}{inbox}{of_default.removeprefix(tenant_id)}"


def own_entries(its_index_partition: str, entries: Iterable[Item]) -> list[Item]:
    """Returns the index entries whose items are the tenant's own.

    A role that may write items of one tenant can give them any index key, another tenant's too.
    """
    tenant_id = _tenant_of(its_index_partition)
    return [entry for entry in entries if _tenant_of(entry["pk"]["S"]) == tenant_id]


def _tenant_of(its_partition: str) -> str:
    return its_partition.partition(_SEPARATOR)[0]


def shard_of(event_id: str, shards: int) -> int:
    """The same for the same id, so that an event is found again by its id alone."""
    return uuid.UUID(event_id).int % shards


def event_key(its_partition: str, event_id: str, inbox: str = DEFAULT_INBOX) -> dict[str, Any]:
    """An inbox's copy of an event stands right behind the event itself."""
    sort_key = event_id if inbox == DEFAULT_INBOX else f"{event_id}{_SEPARATOR}{inbox}"
    return {"pk": text(its_partition), "sk": text(sort_key)}


def inbox_of(item: Item) -> str:
    sort_key: str = item["sk"]["S"]
    return sort_key.partition(_SEPARATOR)[2] or DEFAULT_INBOX


def event_id_of(sort_key: str) -> str:
    return sort_key.partition(_SEPARATOR)[0]


def event_type_of(item: Item) -> str | None:
    return item["event_type"]["S"] if "event_type" in item else None


def by_sort_key(items: Iterable[Item]) -> dict[str, Item]:
    """Events, and copies of them: their ids are unique, whosever they are."""
    return {item["sk"]["S"]: item for item in items}


def key_of(item: Item) -> dict[str, Any]:
    return {"pk": item["pk"], "sk": item["sk"]}


def event_index_keys(
    its_partition: str, inbox: str, event_type: str | None, its_status_key: str, its_place: str
) -> dict[str, Any]:
    keys = {"gsi1pk": text(its_partition), "gsi1sk": text(its_status_key)}
    # Copies are not in it: the event is found by its type once.
    if event_type is not None and inbox == DEFAULT_INBOX:
        keys |= {"gsi2pk": text(its_partition), "gsi2sk": text(f"{event_type}{_SEPARATOR}{its_place}")}
    return keys


# The registry: a tenant, what stands beside it in its own partition, and what leads to it from elsewhere.


def created_range(since_ms: int | None, last_ms: int | None) -> tuple[str, str]:
    """Between which two texts the dates of creation lie, both of them among them."""
    return format_timestamp(since_ms or 0), _AFTER_ALL if last_ms is None else format_timestamp(last_ms)


def active_key(active: bool) -> str:
    """An index cannot have a boolean for a key."""
    return ACTIVE if active else "false"


def email_item_key(email_key: str) -> dict[str, Any]:
    """Leads from an e-mail to its tenant. It is there once, whereas an index would let two of the same in."""
    return {"PK": text(f"EMAIL{_SEPARATOR}{email_key}"), "SK": text(METADATA)}


def audit_key(tenant_id: str, number: int) -> dict[str, Any]:
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(f"{_AUDIT}{number:010d}")}


def audit_range(before: int | None) -> tuple[str, str]:
    """Between which two texts the entries with numbers below that one lie."""
    return _AUDIT, f"{_AUDIT}{_AFTER_ALL if before is None else f'{before - 1:010d}'}"


def key_of_tenant_key(tenant_id: str, key_id: str) -> dict[str, Any]:
    """An entry among the tenant's own items for each of its keys, by which they are listed."""
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(f"{KEYS_OF_TENANT}{key_id}")}


def key_id_key(key_id: str) -> dict[str, Any]:
    """Leads from a key's id to its hash, by which it is revoked."""
    return {"PK": text(f"KEY{_SEPARATOR}{key_id}"), "SK": text(METADATA)}


def inbox_key(tenant_id: str, name: str) -> dict[str, Any]:
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(f"{INBOXES_OF_TENANT}{name}")}


def inbox_names_key(tenant_id: str) -> dict[str, Any]:
    """The names of a tenant's inboxes, and whether `default` is on."""
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(_INBOX_NAMES)}


def is_inbox(item: Item) -> bool:
    """Returns False for the item with the names, which the prefix `INBOX_ITEMS_PREFIX` finds as well."""
    return bool(item["SK"] != text(_INBOX_NAMES))


def attempt_key(tenant_id: str, inbox: str, attempt: str) -> dict[str, Any]:
    """A poll that can be repeated. Its id is the client's own text, so only its hash becomes part of a key."""
    sort_key = f"ATTEMPT{_SEPARATOR}{inbox}{_SEPARATOR}{attempt_digest(attempt)}"
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(sort_key)}


# What became of events: an item for each hour and each day of an inbox, an attribute for each count and type.


def counter_key(tenant_id: str, inbox: str, span: Span, start_ms: int) -> dict[str, Any]:
    """Those of the inbox `default` have the time alone, those of named ones the name before it."""
    return {"PK": tenant_key(tenant_id)["PK"], "SK": text(_counter_stem(inbox, span) + _counter_time(span, start_ms))}


def counter_range(inbox: str, span: Span, since_ms: int) -> tuple[str, str]:
    """Between which two texts the keys lie. For `default`, those of inboxes whose names begin with a digit do too."""
    stem = _counter_stem(inbox, span)
    return stem + _counter_time(span, since_ms), stem + _AFTER_DIGITS


def counter_of(item: Item) -> tuple[str, Span, int]:
    """Of which inbox, and of which hour or day."""
    _, span, *name, time = item["SK"]["S"].split(_SEPARATOR)
    its_span = Span[span]
    start = f"{time}:00+00:00" if its_span is Span.HOUR else f"{time}T00:00+00:00"
    return (name or [DEFAULT_INBOX])[0], its_span, int(datetime.fromisoformat(start).timestamp()) * 1000


def _counter_stem(inbox: str, span: Span) -> str:
    stem = f"{COUNTERS_OF_TENANT}{span.name}{_SEPARATOR}"
    return stem if inbox == DEFAULT_INBOX else f"{stem}{inbox}{_SEPARATOR}"


def _counter_time(span: Span, start_ms: int) -> str:
    return format_timestamp(start_ms)[: len("YYYY-MM-DDTHH") if span is Span.HOUR else len("YYYY-MM-DD")]


def counter_expiry(span: Span, start_ms: int) -> dict[str, str]:
    return number((start_ms + span.ms + span.kept_ms) // 1000)


def count_attribute(name: str, event_type: str | None) -> str:
    return name if event_type is None else f"{name}{_SEPARATOR}{event_type}"


def counted_in(attribute: str) -> tuple[str, str | None]:
    """What is counted there, and of which type; None for what is not counted by type."""
    name, separator, event_type = attribute.partition(_SEPARATOR)
    return name, event_type if separator else None


def types_in(attributes: Iterable[str]) -> set[str]:
    """Those that have counts of their own in an item."""
    return {event_type for name in attributes if (event_type := counted_in(name)[1]) is not None}


COUNTERS_OF_TENANT = f"METRICS{_SEPARATOR}"
UNDELIVERED_COUNT = "undelivered"
"""Of the events that came on a day: how many are undelivered. All days together are what waits."""

_AUDIT = f"AUDIT{_SEPARATOR}"
KEYS_OF_TENANT = f"KEY{_SEPARATOR}"
INBOX_ITEMS_PREFIX = "INBOX"
"""Prefix of the sort keys of a tenant's inboxes and of the item with their names."""
INBOXES_OF_TENANT = f"INBOX{_SEPARATOR}"
_INBOX_NAMES = "INBOXES"
# In an item INBOX#default, a process of an earlier release would see a named inbox and fail to write its copies.
DEFAULT_ENABLED = "default_enabled"
"""In the item with the names: False while `default` is off."""

# Not a tenant's id: nothing is ever stored here. Writing to it, on a condition that cannot hold, tries the table.
NOWHERE = event_key(f"{_SEPARATOR}nowhere", "nowhere")
