"""Leases: claiming, expiry, lost leases and dead letters."""

from dataclasses import replace

import pytest

from inbox.domain.events import Event, Lease, NewEvent, Selection, Status
from tests.contract.consumer import Consumer
from tests.contract.samples import MINUTE, NOW, ids, new_event, receipt, receipts, run_concurrently
from tests.engines.harnesses import MAX_DELIVERIES


def assert_status(consumer: Consumer, event: NewEvent, status: Status, at: int) -> None:
    found = consumer.get(event.event_id, at)
    assert found is not None
    assert found.status == status


def test_lease_marks_an_event_leased_until_it_expires(acme: Consumer) -> None:
    (event,) = acme.send(new_event())

    (leased,) = acme.lease(at=NOW + 5, until=NOW + 20).events
    assert leased.lease is not None
    assert leased == Event(
        event.event_id,
        "order.created",
        NOW,
        Status.LEASED,
        1,
        None,
        event.payload,
        lease=Lease(leased.lease.claim_id, NOW + 20),
    )
    assert acme.get(event.event_id, NOW + 19) == leased


def test_every_claim_has_its_own_id(acme: Consumer) -> None:
    acme.send_some(4)
    claims = [acme.lease(2).events, acme.lease(2).events, acme.lease(4, at=NOW + MINUTE).events]

    first, second, again = ({one.claim_id for one in receipts(events)} for events in claims)
    assert not first & second
    assert not (first | second) & again


def test_leased_event_is_not_claimed_or_peeked(acme: Consumer) -> None:
    events = acme.send_some(3)
    acme.lease(2)

    without_settling = acme.in_another_process().without_settling()
    assert ids(without_settling.peek().events) == ids(events[2:])
    claimed = without_settling.lease()
    assert (ids(claimed.events), claimed.more) == (ids(events[2:]), False)
    assert acme.consume().events == []


@pytest.mark.parametrize(("at", "is_expired"), [(NOW + MINUTE - 1, False), (NOW + MINUTE, True)])
def test_expired_lease_returns_event_to_inbox(acme: Consumer, at: int, is_expired: bool) -> None:
    (event,) = acme.send(new_event())
    leased = acme.lease().events[0]

    undelivered = leased._replace(status=Status.UNDELIVERED, lease=None)
    assert acme.get(event.event_id, at) == (undelivered if is_expired else leased)
    assert acme.peek(at=at).events == ([undelivered] if is_expired else [])
    assert acme.extend([receipt(leased)], at + 1, at) == [not is_expired]
    assert acme.lease(at=at).events == ([acme.get(event.event_id, at)] if is_expired else [])


@pytest.mark.parametrize("until", [NOW + 10, NOW + 3 * MINUTE])
def test_extended_lease_expires_at_its_new_time(acme: Consumer, until: int) -> None:
    (event,) = acme.send(new_event())
    leased = acme.lease().events[0]
    assert leased.lease is not None

    assert acme.extend([receipt(leased)], until, NOW + 5) == [True]
    assert acme.get(event.event_id, until - 1) == leased._replace(lease=replace(leased.lease, expires_at_ms=until))
    assert acme.consume(at=until - 1).events == []
    assert acme.acknowledge([receipt(leased)], until) == [False]
    assert ids(acme.consume(at=until).events) == [event.event_id]


def lose_leases(consumer: Consumer, times: int, at: int = NOW) -> int:
    """Leases every event `times` times for a minute. Returns the time at which the last lease expires."""
    for number in range(times):
        assert consumer.lease(at=at + number * MINUTE).events != []
    return at + times * MINUTE


def test_event_of_a_lost_lease_returns_to_its_position(acme: Consumer) -> None:
    events = acme.send_some(4)
    acme.lease(1, until=NOW + 1000)
    acme.lease(1, until=NOW + 2000)
    acme.send(new_event(), at=NOW + 1)

    assert ids(acme.peek(2, NOW + 1999).events) == ids([events[0], events[2]])
    claimed = acme.lease(3, at=NOW + 2000)
    assert (ids(claimed.events), claimed.more) == (ids(events[:3]), True)
    assert [event.deliveries for event in claimed.events] == [2, 2, 1]


def test_returned_events_are_claimed_in_inbox_order(acme: Consumer) -> None:
    events = acme.send_some(7)
    acme.lease(1, until=NOW + 1000)
    released = receipts(acme.lease(2).events)
    acme.release(released[1:])
    acme.release(released[:1], until=NOW + 1000)
    acme.lease(1, at=NOW + 1, until=NOW + 900)
    acme.consume(1, at=NOW + 2)
    acme.replay(events[3].event_id, NOW + 3)

    assert ids(acme.peek(at=NOW + 1000).events) == ids(events)
    assert ids(acme.consume(4, at=NOW + 1000).events) == ids(events[:4])
    assert ids(acme.consume(4, at=NOW + 1000).events) == ids(events[4:])


@pytest.mark.parametrize("cause", ["release", "replay", "expired lease"])
def test_event_returned_by_one_process_is_claimable_in_all(acme: Consumer, cause: str) -> None:
    (event,) = acme.send(new_event())
    other_process = acme.in_another_process()
    leased = receipts(acme.lease().events)
    if cause == "release":
        other_process.release(leased)
    elif cause == "replay":
        other_process.acknowledge(leased)
        other_process.replay(event.event_id)
    else:
        other_process.release(receipts(other_process.lease(at=NOW + MINUTE).events), NOW + MINUTE)

    assert ids(acme.peek(at=NOW + MINUTE).events) == [event.event_id]
    assert ids(acme.consume(at=NOW + MINUTE).events) == [event.event_id]


def test_event_is_dead_after_max_deliveries_lost_leases(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    at = lose_leases(acme, MAX_DELIVERIES)

    assert_status(acme, event, Status.LEASED, at - 1)
    dead = Event(event.event_id, "order.created", NOW, Status.DEAD, MAX_DELIVERIES, None, event.payload)
    assert acme.get(event.event_id, at) == dead
    claimed = acme.lease(at=at)
    assert (claimed.events, claimed.more) == ([], False)
    assert acme.peek(at=at).events == []
    assert acme.get(event.event_id, at + 1) == dead


@pytest.mark.parametrize("delay_ms", [0, 5])
def test_release_is_not_a_lost_lease(acme: Consumer, delay_ms: int) -> None:
    (event,) = acme.send(new_event())
    at = NOW
    for _ in range(MAX_DELIVERIES):
        acme.release(receipts(acme.lease(at=at).events), at, until=at + delay_ms)
        at += delay_ms
    at = lose_leases(acme, MAX_DELIVERIES - 1, at)

    assert_status(acme, event, Status.UNDELIVERED, at)
    assert_status(acme, event, Status.DEAD, lose_leases(acme, 1, at))


def test_last_failed_release_makes_the_event_dead_at_once(acme: Consumer) -> None:
    first, second = acme.send_some(2)
    at = lose_leases(acme, MAX_DELIVERIES - 1)
    last = acme.lease(1, at=at).events[0]

    assert acme.release([receipt(last)], at, until=at + MINUTE, failed=True) == [True]
    dead = last._replace(status=Status.DEAD, lease=None)
    for process in (acme, acme.in_another_process()):
        assert process.get(first.event_id, at) == dead
        assert ids(process.peek(at=at + MINUTE).events) == [second.event_id]
    assert ids(acme.lease(at=at + MINUTE).events) == [second.event_id]
    assert ids(acme.history(Selection(status=Status.DEAD), at=at)) == [first.event_id]


@pytest.mark.parametrize("then_failed", [True, False])
def test_repeated_failed_release_counts_once(acme: Consumer, then_failed: bool) -> None:
    (event,) = acme.send(new_event())
    for _ in range(MAX_DELIVERIES - 1):
        leased = receipts(acme.lease().events)
        assert acme.release(leased, failed=True) == [True]
        assert acme.release(leased, failed=then_failed) == [True]
        assert acme.in_another_process().release([*leased, *leased], failed=then_failed) == [True, True]
    assert_status(acme, event, Status.UNDELIVERED, NOW)

    last = receipts(acme.lease().events)
    for _ in range(2):
        assert acme.release(last, failed=True) == [True]
    assert_status(acme, event, Status.DEAD, NOW)


def test_failed_release_after_a_release_does_not_count(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    for _ in range(MAX_DELIVERIES):
        leased = receipts(acme.lease().events)
        acme.release(leased)
        assert acme.release(leased, failed=True) == [True]
    assert_status(acme, event, Status.UNDELIVERED, NOW)


def test_replay_resets_failed_releases(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    for _ in range(MAX_DELIVERIES):
        last = receipts(acme.lease().events)
        acme.release(last, failed=True)
    acme.replay(event.event_id)

    assert acme.release(last, failed=True) == [False]
    for _ in range(MAX_DELIVERIES - 1):
        acme.release(receipts(acme.lease().events), failed=True)
    assert_status(acme, event, Status.UNDELIVERED, NOW)


def test_reading_an_event_does_not_change_its_lost_leases(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    at = lose_leases(acme, MAX_DELIVERIES - 1)
    for _ in range(MAX_DELIVERIES):
        assert_status(acme, event, Status.UNDELIVERED, at)
        assert len(acme.peek(at=at).events) == 1
    acme.harness.reopen()

    assert len(acme.lease(at=at).events) == 1
    assert_status(acme, event, Status.DEAD, at + MINUTE)


def test_concurrent_leases_share_the_events(acme: Consumer) -> None:
    events = acme.send_some(48)
    acme.harness.settle()
    processes = [acme.without_settling(), acme.without_settling().in_another_process()]

    def claim(worker: int) -> list[Event]:
        claimed: list[Event] = []
        while page := processes[worker % 2].lease(4).events:
            claimed += page
        return claimed

    claimed = run_concurrently(6, claim)
    assert sorted(event_id for each in claimed for event_id in ids(each)) == sorted(ids(events))
    assert [acme.acknowledge(receipts(each)) for each in claimed] == [[True] * len(each) for each in claimed]
