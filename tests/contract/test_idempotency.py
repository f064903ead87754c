"""What a store promises about events with a key: the last paragraphs of `inbox.store.port.EventStore.put`."""

import threading
import uuid

import pytest

from inbox.errors import IdempotencyConflict
from tests.contract.samples import LATER, NOW, keyed_event, new_event, page_of
from tests.engines.harnesses import Harness


def test_the_same_keyed_event_is_kept_once(harness: Harness) -> None:
    event = keyed_event(str(uuid.uuid4()))
    first = harness.store.events.put("acme", [event], NOW, LATER)[0]
    again = harness.store.events.put("acme", [event], NOW + 1000, LATER)[0]
    harness.settle()

    assert (first.replayed, again.replayed) == (False, True)
    assert (again.event_id, again.timestamp_ms) == (first.event_id, NOW)
    assert len(harness.store.events.claim("acme", page_of(9), NOW).events) == 1


def test_a_keyed_event_that_was_delivered_is_not_kept_again(harness: Harness) -> None:
    event = keyed_event(str(uuid.uuid4()))
    harness.store.events.put("acme", [event], NOW, LATER)
    harness.settle()
    harness.store.events.claim("acme", page_of(9), NOW)

    assert harness.store.events.put("acme", [event], NOW, LATER)[0].replayed
    harness.settle()
    assert harness.store.events.claim("acme", page_of(9), NOW).events == []


def test_another_event_under_the_same_key_is_refused_and_stores_nothing(harness: Harness) -> None:
    taken = keyed_event(str(uuid.uuid4()), b"first", b'{"n":1}')
    harness.store.events.put("acme", [taken], NOW, LATER)
    batch = [new_event(), keyed_event(str(uuid.uuid4())), keyed_event(taken.event_id, b"second", b'{"n":2}')]
    with pytest.raises(IdempotencyConflict) as refused:
        harness.store.events.put("acme", batch, NOW, LATER)
    harness.settle()

    assert refused.value.positions == (2,)
    claimed = harness.store.events.claim("acme", page_of(9), NOW).events
    assert [(event.event_id, event.payload) for event in claimed] == [(taken.event_id, b'{"n":1}')]


def test_a_key_given_twice_in_one_put_counts_once(harness: Harness) -> None:
    event = keyed_event(str(uuid.uuid4()))
    stored = harness.store.events.put("acme", [event, event], NOW, LATER)
    harness.settle()

    assert [each.replayed for each in stored] == [False, True]
    assert len(harness.store.events.claim("acme", page_of(9), NOW).events) == 1


def test_two_tenants_may_use_the_same_id(harness: Harness) -> None:
    event_id = str(uuid.uuid4())
    harness.store.events.put("acme", [keyed_event(event_id, b"a")], NOW, LATER)
    assert harness.store.events.put("globex", [keyed_event(event_id, b"b")], NOW, LATER)[0].replayed is False


def test_puts_of_the_same_key_at_the_same_time_keep_one(harness: Harness) -> None:
    event = keyed_event(str(uuid.uuid4()))
    stores = [harness.store, harness.another()]
    outcomes: list[bool] = []

    def put(worker: int) -> None:
        outcomes.append(stores[worker % 2].events.put("acme", [event], NOW, LATER)[0].replayed)

    threads = [threading.Thread(target=put, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    harness.settle()

    assert sorted(outcomes) == [False] + [True] * 7
    assert len(harness.store.events.claim("acme", page_of(9), NOW).events) == 1


def test_a_key_is_free_again_once_its_event_has_expired(harness: Harness) -> None:
    event_id = str(uuid.uuid4())
    harness.store.events.put("acme", [keyed_event(event_id, b"first")], NOW, NOW // 1000 + 10)
    later = harness.store.events.put("acme", [keyed_event(event_id, b"second", b'{"n":2}')], NOW + 10_000, LATER)
    harness.settle()

    assert later[0].replayed is False
    claimed = harness.store.events.claim("acme", page_of(9), NOW + 10_000)
    assert [event.payload for event in claimed.events] == [b'{"n":2}']
