"""What a store promises about leases: how they are given, when they end, and what a lost one means."""

from dataclasses import replace

import pytest

from inbox.domain.events import Event, Lease, NewEvent, Selection, Status
from tests.contract.consumer import Consumer
from tests.contract.samples import MINUTE, NOW, at_the_same_time, ids, new_event, receipt, receipts
from tests.engines.harnesses import MAX_DELIVERIES


def assert_status(consumer: Consumer, event: NewEvent, status: Status, at: int) -> None:
    found = consumer.get(event.event_id, at)
    assert found is not None
    assert found.status == status


def test_a_lease_hands_an_event_out_until_its_end(acme: Consumer) -> None:
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


def test_every_claim_has_an_id_of_its_own(acme: Consumer) -> None:
    acme.send_some(4)
    claims = [acme.lease(2).events, acme.lease(2).events, acme.lease(4, at=NOW + MINUTE).events]

    first, second, again = ({one.claim_id for one in receipts(events)} for events in claims)
    assert not first & second
    assert not (first | second) & again


def test_a_leased_event_is_not_claimed_or_peeked_at(acme: Consumer) -> None:
    events = acme.send_some(3)
    acme.lease(2)

    in_a_hurry = acme.in_another_process().in_a_hurry()
    assert ids(in_a_hurry.peek().events) == ids(events[2:])
    claimed = in_a_hurry.lease()
    assert (ids(claimed.events), claimed.more) == (ids(events[2:]), False)
    assert acme.consume().events == []


@pytest.mark.parametrize(("at", "back"), [(NOW + MINUTE - 1, False), (NOW + MINUTE, True)])
def test_a_lease_ends_at_the_millisecond(acme: Consumer, at: int, back: bool) -> None:
    (event,) = acme.send(new_event())
    leased = acme.lease().events[0]

    undelivered = leased._replace(status=Status.UNDELIVERED, lease=None)
    assert acme.get(event.event_id, at) == (undelivered if back else leased)
    assert acme.peek(at=at).events == ([undelivered] if back else [])
    assert acme.extend([receipt(leased)], at + 1, at) == [not back]
    assert acme.lease(at=at).events == ([acme.get(event.event_id, at)] if back else [])


@pytest.mark.parametrize("until", [NOW + 10, NOW + 3 * MINUTE])
def test_an_extended_lease_ends_at_its_new_time(acme: Consumer, until: int) -> None:
    (event,) = acme.send(new_event())
    leased = acme.lease().events[0]
    assert leased.lease is not None

    assert acme.extend([receipt(leased)], until, NOW + 5) == [True]
    assert acme.get(event.event_id, until - 1) == leased._replace(lease=replace(leased.lease, expires_at_ms=until))
    assert acme.consume(at=until - 1).events == []
    assert acme.acknowledge([receipt(leased)], until) == [False]
    assert ids(acme.consume(at=until).events) == [event.event_id]


def lose(consumer: Consumer, times: int, at: int = NOW) -> int:
    """Leases all that there is so many times for a minute, and lets it go. When the last of them has run out."""
    for time in range(times):
        assert consumer.lease(at=at + time * MINUTE).events != []
    return at + times * MINUTE


def test_a_lost_lease_brings_an_event_back_to_its_old_place(acme: Consumer) -> None:
    events = acme.send_some(4)
    acme.lease(1, until=NOW + 1000)
    acme.lease(1, until=NOW + 2000)
    acme.send(new_event(), at=NOW + 1)

    assert ids(acme.peek(2, NOW + 1999).events) == ids([events[0], events[2]])
    claimed = acme.lease(3, at=NOW + 2000)
    assert (ids(claimed.events), claimed.more) == (ids(events[:3]), True)
    assert [event.deliveries for event in claimed.events] == [2, 2, 1]


def test_what_comes_back_in_any_way_is_claimed_in_the_order_of_the_inbox(acme: Consumer) -> None:
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


@pytest.mark.parametrize("back", ["release", "replay", "lose"])
def test_what_comes_back_through_one_process_is_there_for_all(acme: Consumer, back: str) -> None:
    (event,) = acme.send(new_event())
    elsewhere = acme.in_another_process()
    leased = receipts(acme.lease().events)
    if back == "release":
        elsewhere.release(leased)
    elif back == "replay":
        elsewhere.acknowledge(leased)
        elsewhere.replay(event.event_id)
    else:
        elsewhere.release(receipts(elsewhere.lease(at=NOW + MINUTE).events), NOW + MINUTE)

    assert ids(acme.peek(at=NOW + MINUTE).events) == [event.event_id]
    assert ids(acme.consume(at=NOW + MINUTE).events) == [event.event_id]


def test_an_event_is_dead_with_the_last_lease_that_it_may_lose(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    at = lose(acme, MAX_DELIVERIES)

    assert_status(acme, event, Status.LEASED, at - 1)
    dead = Event(event.event_id, "order.created", NOW, Status.DEAD, MAX_DELIVERIES, None, event.payload)
    assert acme.get(event.event_id, at) == dead
    claimed = acme.lease(at=at)
    assert (claimed.events, claimed.more) == ([], False)
    assert acme.peek(at=at).events == []
    assert acme.get(event.event_id, at + 1) == dead


@pytest.mark.parametrize("delay", [0, 5])
def test_a_released_lease_is_not_lost(acme: Consumer, delay: int) -> None:
    (event,) = acme.send(new_event())
    at = NOW
    for _ in range(MAX_DELIVERIES):
        acme.release(receipts(acme.lease(at=at).events), at, until=at + delay)
        at += delay
    at = lose(acme, MAX_DELIVERIES - 1, at)

    assert_status(acme, event, Status.UNDELIVERED, at)
    assert_status(acme, event, Status.DEAD, lose(acme, 1, at))


def test_failed_and_lost_leases_count_together(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    at = lose(acme, MAX_DELIVERIES - 2)
    assert acme.release(receipts(acme.lease(at=at).events), at, failed=True) == [True]
    assert_status(acme, event, Status.UNDELIVERED, at)

    assert_status(acme, event, Status.DEAD, lose(acme, 1, at))


def test_event_is_dead_at_once_with_the_last_failed_release(acme: Consumer) -> None:
    first, second = acme.send_some(2)
    at = lose(acme, MAX_DELIVERIES - 1)
    last = acme.lease(1, at=at).events[0]

    assert acme.release([receipt(last)], at, until=at + MINUTE, failed=True) == [True]
    dead = last._replace(status=Status.DEAD, lease=None)
    for process in (acme, acme.in_another_process()):
        assert process.get(first.event_id, at) == dead
        assert ids(process.peek(at=at + MINUTE).events) == [second.event_id]
    assert ids(acme.lease(at=at + MINUTE).events) == [second.event_id]
    assert ids(acme.history(Selection(status=Status.DEAD), at=at)) == [first.event_id]


def test_failed_release_waits_out_its_delay(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    assert acme.release(receipts(acme.lease().events), until=NOW + MINUTE, failed=True) == [True]

    assert acme.lease(at=NOW + MINUTE - 1).events == []
    (again,) = acme.lease(at=NOW + MINUTE).events
    assert (again.event_id, again.deliveries) == (event.event_id, 2)


@pytest.mark.parametrize("then_failed", [True, False])
def test_repeating_a_failed_release_counts_once(acme: Consumer, then_failed: bool) -> None:
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


def test_failing_what_was_released_before_does_not_count(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    for _ in range(MAX_DELIVERIES):
        leased = receipts(acme.lease().events)
        acme.release(leased)
        assert acme.release(leased, failed=True) == [True]
    assert_status(acme, event, Status.UNDELIVERED, NOW)


def test_a_replay_forgets_failed_releases(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    for _ in range(MAX_DELIVERIES):
        last = receipts(acme.lease().events)
        acme.release(last, failed=True)
    acme.replay(event.event_id)

    assert acme.release(last, failed=True) == [False]
    for _ in range(MAX_DELIVERIES - 1):
        acme.release(receipts(acme.lease().events), failed=True)
    assert_status(acme, event, Status.UNDELIVERED, NOW)


def test_leases_lost_in_between_are_counted_whoever_looks(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    at = lose(acme, MAX_DELIVERIES - 1)
    for _ in range(MAX_DELIVERIES):
        assert_status(acme, event, Status.UNDELIVERED, at)
        assert len(acme.peek(at=at).events) == 1
    acme.harness.reopen()

    assert len(acme.lease(at=at).events) == 1
    assert_status(acme, event, Status.DEAD, at + MINUTE)


def test_leases_at_the_same_time_share_the_events_out(acme: Consumer) -> None:
    events = acme.send_some(48)
    acme.harness.settle()
    processes = [acme.in_a_hurry(), acme.in_a_hurry().in_another_process()]

    def take(worker: int) -> list[Event]:
        taken: list[Event] = []
        while page := processes[worker % 2].lease(4).events:
            taken += page
        return taken

    taken = at_the_same_time(6, take)
    assert sorted(event_id for each in taken for event_id in ids(each)) == sorted(ids(events))
    assert [acme.acknowledge(receipts(each)) for each in taken] == [[True] * len(each) for each in taken]
