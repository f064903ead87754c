"""Events and their life, which each inbox keeps for itself. Pure.

POST /events ─▶ undelivered ──consume──▶ delivered
                 ▲   │  ▲                  ▲   │
   release, or   │   │  └──── replay ──────│───┘
   the lease     │  lease                  │
   runs out      │   ▼                     │
                leased ───────ack──────────┘
                 └── lease lost or failed INBOX_MAX_DELIVERIES times ──▶ dead ── replay ──▶ undelivered
"""

import hashlib
import re
import uuid
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

DEFAULT_INBOX = "default"
InboxKey = tuple[str, str]
"""Tenant ID and inbox name."""
ATTEMPT_MS = 300_000
"""How long a poll can be repeated under its attempt id."""
# 500 events of the largest size would be 125 MB. Zapier takes answers of up to 20 MB.
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


# What is made for every event is a NamedTuple: a frozen dataclass takes six times as long to make.


class NewEvent(NamedTuple):
    """An event on its way into a store.

    `payload` is its JSON text. `fingerprint` is there where the sender gave an idempotency key, and tells the same
    event, sent again, from another one.
    """

    event_id: str
    event_type: str | None
    payload: bytes
    fingerprint: bytes | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """In whose hands an event is, and for how long. Every claim has an id of its own."""

    claim_id: str
    expires_at_ms: int


class Event(NamedTuple):
    """An event as an inbox has it. `payload` is its JSON text; `lease` is there while it is leased."""

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
    """Stands for one event under one lease."""

    inbox: str
    event_id: str
    claim_id: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Which events of an inbox: None leaves a question open. From `since_ms` on, and before `until_ms`."""

    inbox: str = DEFAULT_INBOX
    status: Status | None = None
    event_type: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None


class PutResult(NamedTuple):
    """What a store did with a new event: kept it, or found that it has it already.

    `status` is the one that the event got in `default` when it was put: delivered if `default` was off. For a repeat
    it is undelivered once such an event has been replayed.
    """

    event_id: str
    event_type: str | None
    timestamp_ms: int
    replayed: bool
    status: Status = Status.UNDELIVERED


@dataclass(frozen=True, slots=True)
class ExportedEvent:
    """An event with all that a store keeps of it, on its way into another store. `number` rises along the inbox."""

    number: int
    event: Event
    fingerprint: bytes | None
    expires_at_s: int
    lost_leases: int = 0


@dataclass(frozen=True, slots=True)
class ImportResult:
    """How many records a store wrote, and the ids of those that it has no room for."""

    written: int
    too_large: list[str]


@dataclass(frozen=True, slots=True)
class PageSize:
    """At most `events` of them, and no further one once their payloads come to `payload_bytes`."""

    events: int
    payload_bytes: int


@dataclass(frozen=True, slots=True)
class Page:
    """Events in order, and whether there are more behind them."""

    events: list[Event]
    more: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """Events in order, and where to go on, in the store's own words; None at the end."""

    events: list[Event]
    position: str | None


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """How many events are undelivered again, and whether there are more of that selection."""

    count: int
    more: bool


def is_event_id(text: str) -> bool:
    return _EVENT_ID.fullmatch(text) is not None


def random_event_id() -> str:
    return str(uuid.uuid4())


def keyed_event_id(tenant_id: str, idempotency_key: str) -> str:
    """The same id for the same tenant and key, so that a store finds the first event by its primary key."""
    return str(uuid.uuid5(uuid.uuid5(_NAMESPACE, tenant_id), idempotency_key))


def batch_event_id(tenant_id: str, idempotency_key: str, position: int) -> str:
    """The id of one event of a batch that was sent with one key for the whole."""
    return str(uuid.uuid5(uuid.UUID(keyed_event_id(tenant_id, idempotency_key)), str(position)))


def fingerprint(event_type: str | None, canonical_payload: bytes) -> "hashlib._Hash":
    """Returns a hash that is equal for equal events. A type has no newline, so it cannot run into the payload."""
    return hashlib.sha256(f"{event_type or ''}\n".encode() + canonical_payload)


def attempt_digest(attempt: str) -> str:
    """What is stored of a client's own text: it may be anything, a key put there by mistake too."""
    return hashlib.sha256(attempt.encode()).hexdigest()
