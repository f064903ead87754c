"""Events and their status, which each inbox tracks separately. Pure.

POST /events ─▶ undelivered ──consume──▶ delivered
                 ▲   │  ▲                  ▲   │
   release, or   │   │  └──── replay ──────│───┘
   lease expires │  lease                  │
                 │   ▼                     │
                leased ───────ack──────────┘
                 └── lease lost or failed INBOX_MAX_DELIVERIES times ──▶ dead ── replay ──▶ undelivered
"""

import hashlib
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

DEFAULT_INBOX = "default"
InboxKey = tuple[str, str]
"""Tenant ID and inbox name."""
ATTEMPT_MS = 300_000
"""How long a poll can be repeated with the same `attempt`."""
# Zapier accepts responses of up to 20 MB; 500 events of the largest size would be 125 MB.
MAX_PAYLOAD_BYTES = 16 * 1024 * 1024

_EVENT_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAMESPACE = uuid.UUID("6f7dd7a3-6f0c-5c1e-9a53-0d7b1f0c6a55")


class Status(StrEnum):
    UNDELIVERED = "undelivered"
    LEASED = "leased"
    DELIVERED = "delivered"
    DEAD = "dead"


class Order(StrEnum):
    OLDEST = "oldest"
    NEWEST = "newest"


# Created for every event, so NamedTuples: a frozen dataclass takes six times as long to create.


class NewEvent(NamedTuple):
    """An event to be stored. `payload` is its JSON text.

    `fingerprint` is set if the producer sent an idempotency key: it differs for different events under the same key.
    """

    event_id: str
    event_type: str | None
    payload: bytes
    fingerprint: bytes | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """A consumer's hold on an event. No two leases of one event have the same `claim_id`."""

    claim_id: str
    expires_at_ms: int


class Event(NamedTuple):
    """An event in an inbox. `payload` is its JSON text; `lease` is set while it is leased."""

    event_id: str
    event_type: str | None
    timestamp_ms: int
    status: Status
    deliveries: int
    delivered_at_ms: int | None
    payload: bytes
    inbox: str = DEFAULT_INBOX
    lease: Lease | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of one lease of one event."""

    inbox: str
    event_id: str
    claim_id: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Events of an inbox, from `since_ms` on and before `until_ms`. None means any."""

    inbox: str = DEFAULT_INBOX
    status: Status | None = None
    event_type: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None


class PutResult(NamedTuple):
    """A new event that was stored, or found under its idempotency key if `repeated` is True.

    `status` is the event's first status in `default`: delivered if `default` was disabled. For a repeated event it is
    undelivered once that event has been replayed.
    """

    event_id: str
    event_type: str | None
    timestamp_ms: int
    repeated: bool
    status: Status = Status.UNDELIVERED


@dataclass(frozen=True, slots=True)
class ExportedEvent:
    """An event as stored, with everything that an import needs. Its lease or delay may have ended.

    An inbox is ordered by timestamp, and events of one millisecond by `number` and `origin`. All three never change.
    """

    number: int
    event: Event
    fingerprint: bytes | None
    expires_at_s: int
    lost_leases: int = 0
    available_at_ms: int | None = None
    """The end of the delay if the event was released with one."""
    origin: str = "copied"


@dataclass(frozen=True, slots=True)
class EventExport:
    """`count` is the number of events when the export began. Later `events` may leave out some that were deleted."""

    count: int
    events: Iterator[ExportedEvent]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The number of written events, and the IDs of events that are too large for the store."""

    written: int
    too_large: list[str]


@dataclass(frozen=True, slots=True)
class PageSize:
    """Up to `events` events; none is added after their payloads have reached `payload_bytes`."""

    events: int
    payload_bytes: int


@dataclass(frozen=True, slots=True)
class Page:
    """Events in order. `more` is True if others follow."""

    events: list[Event]
    more: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """Events in order. `position` continues the list, in a format of the store; None at the end."""

    events: list[Event]
    position: str | None


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The number of replayed events. `more` is True if the selection has others."""

    count: int
    more: bool


def is_event_id(text: str) -> bool:
    return _EVENT_ID.fullmatch(text) is not None


def random_event_id() -> str:
    return str(uuid.uuid4())


def keyed_event_id(tenant_id: str, idempotency_key: str) -> str:
    """Returns the same ID for the same tenant and key, so that a store finds the first event by its primary key."""
    return str(uuid.uuid5(uuid.uuid5(_NAMESPACE, tenant_id), idempotency_key))


def batch_event_id(tenant_id: str, idempotency_key: str, position: int) -> str:
    return str(uuid.uuid5(uuid.UUID(keyed_event_id(tenant_id, idempotency_key)), str(position)))


def attempt_digest(attempt: str) -> str:
    """Returns a hash to store in place of the client's text, which may be an API key sent by mistake."""
    return hashlib.sha256(attempt.encode()).hexdigest()
