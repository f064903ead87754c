"""Order of delivery while events are being stored, in real time. Nothing here waits for an index to catch up."""

import threading
import uuid
from collections.abc import Callable

import pytest

from inbox.store.interface import Store
from tests.contract.consumer import Consumer
from tests.contract.samples import LATER_S, MINUTE, ids, keyed_event, new_event, page_of

EVENTS = 60
DEADLINE_MS = 60_000


def poll_until(store: Store, expected: int, poll: Callable[[], list[str]]) -> list[str]:
    """Polls until `expected` events have come. Returns their IDs in the order in which they came."""
    deadline_ms = store.now_ms() + DEADLINE_MS
    polled: list[str] = []
    while len(polled) < expected:
        assert store.now_ms() < deadline_ms, f"{len(polled)} of {expected} events"
        polled += poll()
    return polled


def consume(store: Store) -> list[str]:
    return ids(store.events.claim("acme", "default", page_of(7), store.now_ms()).events)


def lease(store: Store) -> list[str]:
    now_ms = store.now_ms()
    return ids(store.events.claim("acme", "default", page_of(7), now_ms, now_ms + MINUTE).events)


@pytest.mark.parametrize("poll", [consume, lease])
def test_events_of_one_producer_are_polled_in_order_while_it_sends(
    store: Store, poll: Callable[[Store], list[str]]
) -> None:
    events = [new_event() for _ in range(EVENTS)]

    def send() -> None:
        for event in events:
            store.events.put("acme", [event], store.now_ms(), LATER_S)

    producer = threading.Thread(target=send)
    producer.start()
    try:
        assert poll_until(store, EVENTS, lambda: poll(store)) == ids(events)
    finally:
        producer.join()


@pytest.mark.parametrize("has_keys", [False, True], ids=["plain", "idempotency keys"])
def test_batch_is_polled_in_order_while_it_is_stored(store: Store, has_keys: bool) -> None:
    batches = [
        [keyed_event(str(uuid.uuid4())) if has_keys else new_event() for _ in range(EVENTS // 5)] for _ in range(5)
    ]

    def send() -> None:
        for batch in batches:
            store.events.put("acme", batch, store.now_ms(), LATER_S)

    producer = threading.Thread(target=send)
    producer.start()
    try:
        expected = [event.event_id for batch in batches for event in batch]
        assert poll_until(store, EVENTS, lambda: consume(store)) == expected
    finally:
        producer.join()


def test_consumer_that_polls_through_several_processes_gets_events_in_order(acme: Consumer, store: Store) -> None:
    processes = [store, acme.in_another_process().process, acme.in_another_process().process]
    events = [new_event() for _ in range(EVENTS)]

    def send() -> None:
        for number, event in enumerate(events):
            sender = processes[number % 2]
            assert sender is not None
            sender.events.put("acme", [event], sender.now_ms(), LATER_S)

    def poll_each_process() -> list[str]:
        return [event_id for each in processes if each is not None for event_id in consume(each)]

    producer = threading.Thread(target=send)
    producer.start()
    try:
        assert poll_until(store, EVENTS, poll_each_process) == ids(events)
    finally:
        producer.join()
