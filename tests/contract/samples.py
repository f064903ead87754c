"""Events for the suite, the receipts of those that are leased, and several callers at once."""

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from inbox.events import Event, NewEvent, Order, PageSize, Receipt

# Far ahead: DynamoDB Local deletes what has expired by its own clock, and these tests have theirs.
NOW = 4_102_444_800_123
LATER = NOW // 1000 + 3600
MINUTE = 60_000

Answer = TypeVar("Answer")


def new_event(payload: bytes = b'{"n":1}', event_type: str | None = "order.created") -> NewEvent:
    return NewEvent(str(uuid.uuid4()), event_type, payload)


def keyed_event(event_id: str, fingerprint: bytes = b"first", payload: bytes = b"{}") -> NewEvent:
    return NewEvent(event_id, None, payload, fingerprint)


def numbered(count: int, event_type: str | None = "order.created") -> list[NewEvent]:
    return [new_event(b'{"n":%d}' % number, event_type) for number in range(count)]


def page_of(events: int, payload_bytes: int = 1_000_000) -> PageSize:
    return PageSize(events, payload_bytes)


def ids(events: Sequence[Event] | Sequence[NewEvent]) -> list[str]:
    return [event.event_id for event in events]


def in_order(events: Sequence[NewEvent], order: Order) -> list[str]:
    return ids(events)[:: 1 if order == Order.OLDEST else -1]


def receipt(event: Event) -> Receipt:
    assert event.lease is not None
    return Receipt(event.inbox, event.event_id, event.lease.claim_id)


def receipts(events: Sequence[Event]) -> list[Receipt]:
    return [receipt(event) for event in events]


def at_the_same_time(workers: int, act: Callable[[int], Answer]) -> list[Answer]:
    """What each of them got."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(act, range(workers)))
