"""Events for the suite."""

import uuid
from collections.abc import Sequence

from inbox.events import Event, NewEvent, PageSize

# Far ahead: DynamoDB Local deletes what has expired by its own clock, and these tests have theirs.
NOW = 4_102_444_800_123
LATER = NOW // 1000 + 3600


def new_event(payload: bytes = b'{"n":1}', event_type: str | None = "order.created") -> NewEvent:
    return NewEvent(str(uuid.uuid4()), event_type, payload)


def keyed_event(event_id: str, fingerprint: bytes = b"first", payload: bytes = b"{}") -> NewEvent:
    return NewEvent(event_id, None, payload, fingerprint)


def numbered(count: int) -> list[NewEvent]:
    return [new_event(b'{"n":%d}' % number) for number in range(count)]


def page_of(events: int, payload_bytes: int = 1_000_000) -> PageSize:
    return PageSize(events, payload_bytes)


def ids(events: Sequence[Event] | Sequence[NewEvent]) -> list[str]:
    return [event.event_id for event in events]
