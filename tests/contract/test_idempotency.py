"""Idempotency keys."""

import uuid

import pytest

from inbox.errors import IdempotencyConflict
from tests.contract.consumer import Consumer
from tests.contract.samples import NOW, keyed_event, new_event, run_concurrently


def test_repeated_event_is_stored_once(acme: Consumer) -> None:
    event = keyed_event(str(uuid.uuid4()))
    first = acme.put([event])[0]
    again = acme.put([event], at=NOW + 1000)[0]

    assert (first.repeated, again.repeated) == (False, True)
    assert (again.event_id, again.timestamp_ms) == (first.event_id, NOW)
    assert len(acme.consume().events) == 1
    assert acme.put([event])[0].repeated
    assert acme.consume().events == []


def test_different_event_under_the_same_key_is_refused(acme: Consumer) -> None:
    first = keyed_event(str(uuid.uuid4()), b"first", b'{"n":1}')
    acme.put([first])
    batch = [new_event(), keyed_event(str(uuid.uuid4())), keyed_event(first.event_id, b"second", b'{"n":2}')]
    with pytest.raises(IdempotencyConflict) as refused:
        acme.put(batch)

    assert refused.value.positions == (2,)
    claimed = acme.consume().events
    assert [(event.event_id, event.payload) for event in claimed] == [(first.event_id, b'{"n":1}')]


def test_key_repeated_within_one_put_is_stored_once(acme: Consumer) -> None:
    event = keyed_event(str(uuid.uuid4()))
    stored = acme.put([event, event])

    assert [each.repeated for each in stored] == [False, True]
    assert len(acme.consume().events) == 1


def test_tenants_can_use_the_same_key(acme: Consumer) -> None:
    event_id = str(uuid.uuid4())
    acme.put([keyed_event(event_id, b"a")])
    assert acme.in_tenant("globex").put([keyed_event(event_id, b"b")])[0].repeated is False


def test_concurrent_puts_of_one_key_store_one_event(acme: Consumer) -> None:
    event = keyed_event(str(uuid.uuid4()))
    processes = [acme, acme.in_another_process()]

    outcomes = run_concurrently(8, lambda worker: processes[worker % 2].put([event])[0].repeated)
    assert sorted(outcomes) == [False] + [True] * 7
    assert len(acme.consume().events) == 1


def test_key_is_free_after_its_event_has_expired(acme: Consumer) -> None:
    event_id = str(uuid.uuid4())
    acme.put([keyed_event(event_id, b"first")], expires_at_s=NOW // 1000 + 10)
    stored = acme.put([keyed_event(event_id, b"second", b'{"n":2}')], at=NOW + 10_000)

    assert stored[0].repeated is False
    claimed = acme.consume(at=NOW + 10_000)
    assert [event.payload for event in claimed.events] == [b'{"n":2}']


def test_key_is_free_after_its_event_was_erased(acme: Consumer) -> None:
    event_id = str(uuid.uuid4())
    acme.put([keyed_event(event_id, b"first")])
    acme.erase(event_id)

    assert acme.put([keyed_event(event_id, b"second", b'{"n":2}')], at=NOW + 5)[0].repeated is False
    assert [(event.payload, event.timestamp_ms) for event in acme.consume().events] == [(b'{"n":2}', NOW + 5)]
