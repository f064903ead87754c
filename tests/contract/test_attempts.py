"""Claims repeated with the same attempt."""

from collections.abc import Callable

import pytest

from inbox.domain.events import ATTEMPT_MS, Event, Page, Status
from tests.contract.consumer import Consumer
from tests.contract.samples import MINUTE, NOW, ids, new_event, receipt, receipts, run_concurrently
from tests.engines.harnesses import MAX_DELIVERIES

Claim = Callable[..., Page]
MODES = pytest.mark.parametrize("claim", [Consumer.consume, Consumer.lease], ids=["consume", "lease"])


@MODES
def test_repeated_attempt_returns_the_same_events(acme: Consumer, claim: Claim) -> None:
    acme.send_some(5)
    first = claim(acme, 3, attempt="a")

    assert claim(acme, 3, NOW + 5, attempt="a") == first
    assert [acme.get(event_id) for event_id in ids(first.events)] == first.events
    assert claim(acme.in_another_process(), 3, NOW + 6, attempt="a") == first
    acme.harness.reopen()
    assert claim(acme, 3, NOW + 7, attempt="a") == first


@MODES
def test_repeated_attempt_does_not_depend_on_the_index(acme: Consumer, claim: Claim) -> None:
    acme.send_some(5)
    first = claim(acme, 3, attempt="a")

    assert claim(acme.without_settling(), 3, attempt="a").events == first.events
    assert claim(acme.in_another_process().without_settling(), 3, attempt="a").events == first.events


def test_repeated_attempt_reports_whether_more_events_remain(acme: Consumer) -> None:
    acme.send_some(3)
    acme.lease(2, attempt="a")

    assert acme.lease(2, attempt="a").more is True
    acme.consume(1)
    assert acme.lease(2, attempt="a").more is False


@MODES
def test_repeated_attempt_adds_no_events(acme: Consumer, claim: Claim) -> None:
    first, second = acme.send_some(2)
    claim(acme, 1, attempt="a")

    assert ids(claim(acme, 9, attempt="a").events) == [first.event_id]
    assert ids(claim(acme, 9, attempt="b").events) == [second.event_id]
    acme.send(new_event(), at=NOW + 1)
    assert ids(claim(acme, 9, NOW + 1, attempt="b").events) == [second.event_id]


@pytest.mark.parametrize(("after_ms", "is_repeated"), [(ATTEMPT_MS - 1, True), (ATTEMPT_MS, False)])
def test_attempt_expires_five_minutes_after_its_first_use(acme: Consumer, after_ms: int, is_repeated: bool) -> None:
    events = acme.send_some(2)
    acme.consume(1, attempt="a")
    acme.consume(1, NOW + 5, attempt="a")
    acme.replay(events[0].event_id, NOW + 6)
    acme.consume(1, NOW + 7, attempt="a")

    assert ids(acme.consume(1, NOW + after_ms, attempt="a").events) == ids(events[:1] if is_repeated else events[1:])


def test_expired_attempt_starts_again(acme: Consumer) -> None:
    events = acme.send_some(3)
    for number in range(3):
        for at in (NOW + number * ATTEMPT_MS, NOW + number * ATTEMPT_MS + 5):
            assert ids(acme.consume(1, at, attempt="a").events) == [events[number].event_id]


def test_empty_attempt_is_not_stored(acme: Consumer) -> None:
    acme.send_some(1)
    for elapsed_ms in range(MAX_DELIVERIES):
        acme.lease(at=NOW + elapsed_ms, until=NOW + elapsed_ms + 1)
    at = NOW + MAX_DELIVERIES
    assert [acme.consume(at=at, attempt="a").events, acme.consume(at=at, attempt="a").events] == [[], []]

    (event,) = acme.send(new_event(), at=at)
    assert ids(acme.consume(at=at, attempt="a").events) == [event.event_id]


def test_attempts_are_separate_for_each_tenant_and_inbox(acme: Consumer) -> None:
    shipping, globex = acme.in_inbox("shipping"), acme.in_tenant("globex")
    shipping.create_inbox()
    globex.send_some(2)
    events = acme.send_some(2)
    acme.consume(1, attempt="a")

    assert ids(shipping.lease(2, attempt="a").events) == ids(events)
    assert len(globex.lease(2, attempt="a").events) == 2
    assert ids(acme.consume(2, attempt="a").events) == ids(events[:1])


def test_attempt_can_be_any_text(acme: Consumer) -> None:
    acme.send_some(3)
    texts = ["é" * 128, "default#1 /%'\"\\", "default"]
    first = [acme.lease(1, attempt=text).events for text in texts]

    assert len({event_id for events in first for event_id in ids(events)}) == 3
    assert [acme.lease(1, attempt=text).events for text in texts] == first


def test_repeated_attempt_claims_undelivered_events_again(acme: Consumer) -> None:
    acme.send_some(4)
    first = acme.lease(4, until=NOW + 10, attempt="a").events
    acme.extend(receipts(first[3:]), NOW + MINUTE)
    acme.release([receipt(first[0])])
    acme.acknowledge([receipt(first[1])])
    acme.replay(first[1].event_id)

    page = acme.lease(4, NOW + 10, attempt="a")
    again = page.events
    assert (ids(again), page.more) == (ids(first), False)
    assert [event.deliveries for event in again] == [2, 2, 2, 1]
    assert {event.lease.expires_at_ms for event in again if event.lease} == {NOW + 10 + MINUTE, NOW + MINUTE}
    assert acme.lease(4, NOW + 20, attempt="a").events == again
    assert acme.acknowledge(receipts(first), NOW + 20) == [False, False, False, True]
    assert acme.acknowledge(receipts(again), NOW + 20) == [True] * 4


def test_repeated_attempt_consumes_replayed_events_again(acme: Consumer) -> None:
    events = acme.send_some(2)
    acme.consume(attempt="a")
    acme.replay(events[1].event_id, NOW + 5)

    again = acme.consume(at=NOW + 6, attempt="a").events
    assert ids(again) == ids(events)
    assert [(event.deliveries, event.delivered_at_ms) for event in again] == [(1, NOW), (2, NOW + 6)]


@pytest.mark.parametrize("other_claim", [Consumer.consume, Consumer.lease], ids=["consume", "lease"])
def test_repeated_attempt_omits_events_of_another_claim(acme: Consumer, other_claim: Claim) -> None:
    events = acme.send_some(3)
    first = acme.lease(2, attempt="a").events
    acme.release([receipt(first[0])])
    other_claim(acme, 1, NOW + 1)

    assert acme.lease(2, NOW + 2, attempt="a").events == first[1:]
    acme.acknowledge([receipt(first[1])], NOW + 3)
    acme.replay(first[1].event_id, NOW + 3)
    other_claim(acme, 1, NOW + 4)
    page = acme.lease(2, NOW + 5, attempt="a")
    assert (page.events, page.more) == ([], True)
    assert ids(acme.consume(at=NOW + 6).events) == ids(events[2:])


def test_repeated_attempt_returns_acknowledged_events_as_delivered(acme: Consumer) -> None:
    acme.send_some(2)
    first = acme.lease(attempt="a").events
    acme.acknowledge([receipt(first[0])], NOW + 5)

    delivered = first[0]._replace(status=Status.DELIVERED, delivered_at_ms=NOW + 5, lease=None)
    assert acme.lease(at=NOW + 6, attempt="a").events == [delivered, first[1]]


def test_repeated_attempt_omits_delayed_dead_and_erased_events(acme: Consumer) -> None:
    delayed, dead, erased, kept = acme.send_some(4)
    for elapsed_ms in range(MAX_DELIVERIES - 1):
        acme.lease(4, NOW + elapsed_ms, until=NOW + elapsed_ms + 1)
    at = NOW + MAX_DELIVERIES
    first = acme.lease(4, at, until=at + 10, attempt="a").events
    acme.extend([receipt(event) for event in first if event.event_id != dead.event_id], at + MINUTE, at)
    acme.release([receipt(first[0])], at, until=at + 20)
    acme.erase(erased.event_id, at)

    assert ids(acme.lease(4, at + 10, attempt="a").events) == [kept.event_id]
    assert ids(acme.lease(4, at + 20, attempt="a").events) == [delayed.event_id, kept.event_id]


@MODES
def test_concurrent_attempts_return_the_same_events(acme: Consumer, claim: Claim) -> None:
    events = acme.send_some(30)

    for claimed in claim_concurrently(acme, claim, NOW):
        assert ids(claimed) == ids(events[:10])


def test_concurrent_attempts_claim_expired_leases_once(acme: Consumer) -> None:
    events = acme.send_some(30)
    acme.lease(10, attempt="a")

    first, *others = claim_concurrently(acme, Consumer.lease, NOW + MINUTE)
    assert ids(first) == ids(events[:10])
    assert {event.deliveries for event in first} == {2}
    assert others == [first] * len(others)


def claim_concurrently(acme: Consumer, claim: Claim, at: int) -> list[list[Event]]:
    acme.harness.settle()
    processes = [acme.without_settling(), acme.in_another_process().without_settling()]
    return run_concurrently(6, lambda worker: claim(processes[worker % 2], 10, at, attempt="a").events)
