"""Replaying one event, or all of a selection."""

import pytest

from inbox.domain.events import ReplayResult, Selection, Status
from tests.contract.consumer import Consumer
from tests.contract.samples import MINUTE, NOW, ids, new_event, receipts
from tests.engines.harnesses import MAX_DELIVERIES


def make_dead(consumer: Consumer, limit: int = 9, at: int = NOW) -> int:
    """Makes up to `limit` events dead. Returns the time at which the last lease expires."""
    for elapsed_ms in range(MAX_DELIVERIES):
        assert consumer.lease(limit, at + elapsed_ms, until=at + elapsed_ms + 1).events != []
    return at + MAX_DELIVERIES


def test_replayed_event_returns_to_its_position(acme: Consumer) -> None:
    events = acme.send_some(3)
    delivered = acme.consume(2).events

    undelivered = delivered[1]._replace(status=Status.UNDELIVERED, delivered_at_ms=None)
    assert acme.replay(events[1].event_id, NOW + 5) == undelivered
    assert acme.get(events[1].event_id) == undelivered
    claimed = acme.consume(at=NOW + 6).events
    assert ids(claimed) == ids(events[1:])
    assert [(event.deliveries, event.delivered_at_ms) for event in claimed] == [(2, NOW + 6), (1, NOW + 6)]


def test_replayed_dead_event_has_no_lost_leases(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    at = make_dead(acme)

    assert (found := acme.replay(event.event_id, at)) is not None
    assert (found.status, found.deliveries, found.lease) == (Status.UNDELIVERED, MAX_DELIVERIES, None)
    again = make_dead(acme, at=at)
    assert (found := acme.get(event.event_id, again - 1)) is not None
    assert (found.status, found.deliveries) == (Status.LEASED, 2 * MAX_DELIVERIES)
    assert (found := acme.get(event.event_id, again)) is not None
    assert found.status == Status.DEAD


def test_replayed_delivered_event_has_no_lost_leases(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    for elapsed_ms in range(MAX_DELIVERIES - 1):
        acme.lease(at=NOW + elapsed_ms, until=NOW + elapsed_ms + 1)
    at = NOW + MAX_DELIVERIES
    acme.consume(at=at)
    acme.replay(event.event_id, at)
    for elapsed_ms in range(MAX_DELIVERIES - 1):
        acme.lease(at=at + elapsed_ms, until=at + elapsed_ms + 1)

    assert ids(acme.peek(at=at + MAX_DELIVERIES).events) == [event.event_id]


def test_replay_of_an_undelivered_event_keeps_its_lost_leases(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    for elapsed_ms in range(MAX_DELIVERIES):
        acme.replay(event.event_id, NOW + elapsed_ms)
        acme.lease(at=NOW + elapsed_ms, until=NOW + elapsed_ms + 1)

    assert (found := acme.get(event.event_id, NOW + MAX_DELIVERIES)) is not None
    assert found.status == Status.DEAD


def test_replay_of_an_unknown_event_returns_none(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    acme.consume()

    assert acme.replay("00000000-0000-4000-8000-000000000000") is None
    assert acme.in_tenant("globex").replay(event.event_id) is None
    assert acme.in_inbox("shipping").replay(event.event_id) is None


def test_replay_all_replays_the_oldest_and_reports_whether_more_remain(acme: Consumer) -> None:
    events = acme.send_some(5)
    acme.consume()

    assert acme.replay_all(limit=2) == ReplayResult(2, True)
    assert ids(acme.peek().events) == ids(events[:2])
    assert acme.replay_all(limit=3) == ReplayResult(3, False)
    assert ids(acme.peek().events) == ids(events)
    assert acme.replay_all(limit=3) == ReplayResult(0, False)
    assert {event.deliveries for event in acme.consume().events} == {2}


def test_replay_all_replays_only_delivered_and_dead_events(acme: Consumer) -> None:
    dead, delivered, delayed, leased, new = acme.send_some(5)
    at = make_dead(acme, 1)
    acme.consume(1, at)
    acme.release(receipts(acme.lease(1, at).events), at, until=at + MINUTE)
    still_leased = acme.lease(1, at).events

    assert acme.replay_all(at=at) == ReplayResult(2, False)
    assert ids(acme.peek(at=at).events) == ids([dead, delivered, new])
    assert acme.get(leased.event_id, at) == still_leased[0]
    assert ids(acme.consume(at=at + MINUTE).events) == ids([dead, delivered, delayed, leased, new])


@pytest.mark.parametrize(
    ("status", "expected"),
    [(Status.DELIVERED, [1]), (Status.DEAD, [0]), (Status.UNDELIVERED, []), (Status.LEASED, [])],
)
def test_replay_all_by_status_replays_no_other_events(acme: Consumer, status: Status, expected: list[int]) -> None:
    events = acme.send_some(4)
    at = make_dead(acme, 1)
    acme.consume(1, at)
    acme.lease(1, at)

    assert acme.replay_all(Selection(status=status), at=at) == ReplayResult(len(expected), False)
    assert ids(acme.peek(at=at).events) == ids([events[number] for number in [*expected, 3]])


def test_replay_all_by_type_and_time_replays_no_other_events(acme: Consumer) -> None:
    events = [acme.send(new_event(event_type="ab"[number % 2]), at=NOW + number)[0] for number in range(6)]
    acme.consume(at=NOW + 6)

    assert acme.replay_all(Selection(event_type="a", since_ms=NOW + 2, until_ms=NOW + 4)) == ReplayResult(1, False)
    assert ids(acme.peek().events) == ids(events[2:3])
    assert acme.replay_all(Selection(since_ms=NOW + 3), limit=2) == ReplayResult(2, True)
    assert ids(acme.peek().events) == ids(events[2:5])
    assert acme.replay_all(Selection(event_type="b", until_ms=NOW + 4)) == ReplayResult(1, False)
    assert ids(acme.peek().events) == ids([events[1], *events[2:5]])


def test_replay_all_includes_events_that_just_died(acme: Consumer) -> None:
    events = acme.send_some(3)
    at = make_dead(acme)

    assert acme.replay_all(limit=9, at=at) == ReplayResult(3, False)
    assert ids(acme.peek(at=at).events) == ids(events)
    at = make_dead(acme, at=at)
    assert acme.replay_all(limit=2, at=at) == ReplayResult(2, True)


def test_replay_all_stays_in_its_inbox_and_tenant(acme: Consumer) -> None:
    shipping = acme.in_inbox("shipping")
    shipping.create_inbox()
    acme.in_tenant("globex").send_some(1)
    acme.send_some(2)
    for consumer in (acme, shipping, acme.in_tenant("globex")):
        consumer.consume()

    assert shipping.replay_all() == ReplayResult(2, False)
    assert len(shipping.peek().events) == 2
    assert acme.peek().events == acme.in_tenant("globex").peek().events == []
