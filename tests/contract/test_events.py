"""What a store promises about putting and taking events: `inbox.store.port.EventStore`, sentence by sentence."""

import pytest

from inbox.domain.events import DEFAULT_INBOX, Event, Order, Status
from tests.contract.consumer import Consumer
from tests.contract.samples import LATER, NOW, at_the_same_time, ids, new_event, numbered, page_of
from tests.engines.harnesses import Harness


def test_what_is_put_can_be_got(acme: Consumer) -> None:
    (event,) = acme.send(new_event(b'{"text":"\xc3\xa9\xf0\x9f\x8e\x89","n":1.0}'))

    assert acme.get(event.event_id) == Event(
        event.event_id, "order.created", NOW, Status.UNDELIVERED, 0, None, event.payload
    )


def test_put_answers_one_outcome_for_each_in_order(harness: Harness) -> None:
    events = numbered(3)
    stored = harness.store.events.put("acme", events, NOW, LATER)

    assert [each.event_id for each in stored] == ids(events)
    assert [(each.event_type, each.timestamp_ms, each.replayed) for each in stored] == [
        ("order.created", NOW, False)
    ] * 3


def test_an_event_may_have_no_type(acme: Consumer) -> None:
    (event,) = acme.send(new_event(event_type=None))

    found = acme.get(event.event_id)
    assert found is not None
    assert found.event_type is None


def test_what_was_put_survives_a_restart(acme: Consumer) -> None:
    events = acme.send_some(3)
    acme.harness.reopen()

    assert ids(acme.consume().events) == ids(events)


def test_what_was_claimed_stays_claimed_after_a_restart(acme: Consumer) -> None:
    events = acme.send_some(3)
    acme.consume(2)
    acme.harness.reopen()

    assert ids(acme.consume().events) == ids(events[2:])


def test_events_of_one_millisecond_come_out_in_the_order_they_went_in(acme: Consumer) -> None:
    events = numbered(50)
    processes = [acme, acme.in_another_process()]
    for position, event in enumerate(events):
        processes[position % 2].send(event)

    assert ids(acme.consume(100).events) == ids(events)


def test_a_clock_that_steps_back_changes_no_order(acme: Consumer) -> None:
    events = numbered(3)
    for event, now_ms in zip(events, (NOW, NOW + 5, NOW - 3_600_000), strict=True):
        acme.send(event, at=now_ms)

    claimed = acme.consume().events
    assert ids(claimed) == ids(events)
    assert [event.timestamp_ms for event in claimed] == [NOW, NOW + 5, NOW + 5]


def test_a_claim_marks_events_delivered(acme: Consumer) -> None:
    (event,) = acme.send(new_event())

    claimed = acme.consume(at=NOW + 5).events
    delivered = Event(event.event_id, "order.created", NOW, Status.DELIVERED, 1, NOW + 5, event.payload)
    assert claimed == [delivered]
    assert acme.get(event.event_id) == delivered


def test_a_claim_takes_the_oldest_and_says_whether_more_remain(acme: Consumer) -> None:
    events = acme.send_some(5)
    acme.harness.settle()

    taken = [acme.in_a_hurry().consume(2) for _ in range(4)]
    assert [ids(page.events) for page in taken] == [ids(events[0:2]), ids(events[2:4]), ids(events[4:]), []]
    assert [page.more for page in taken] == [True, True, False, False]


def test_a_claim_that_takes_the_last_says_that_none_remain(acme: Consumer) -> None:
    acme.send_some(2)

    assert acme.consume(2).more is False


def test_a_peek_changes_nothing_and_turns_round(acme: Consumer) -> None:
    events = acme.send_some(3)

    oldest, newest = acme.peek(2), acme.peek(2, order=Order.NEWEST)
    assert (ids(oldest.events), oldest.more) == (ids(events[:2]), True)
    assert (ids(newest.events), newest.more) == (ids(events[:0:-1]), True)
    assert ids(acme.consume().events) == ids(events)


def test_a_peek_shows_events_as_they_are(acme: Consumer) -> None:
    (event,) = acme.send(new_event())

    assert acme.peek().events == [acme.get(event.event_id)]


@pytest.mark.parametrize(("payload_bytes", "taken"), [(1, 1), (100, 1), (101, 2), (250, 3), (500, 5), (1000, 5)])
def test_an_answer_ends_once_its_payloads_are_large_enough(harness: Harness, payload_bytes: int, taken: int) -> None:
    events = [new_event(b'{"n":"' + b"x" * 92 + b'"}') for _ in range(5)]
    assert {len(event.payload) for event in events} == {100}
    harness.store.events.put("acme", events, NOW, LATER)
    harness.settle()

    size = page_of(9, payload_bytes)
    for order, expected in ((Order.OLDEST, ids(events)), (Order.NEWEST, ids(events)[::-1])):
        page = harness.store.events.peek("acme", DEFAULT_INBOX, order, size, NOW)
        assert (ids(page.events), page.more) == (expected[:taken], taken < 5)
    claimed = harness.store.events.claim("acme", DEFAULT_INBOX, size, NOW)
    assert (ids(claimed.events), claimed.more) == (ids(events)[:taken], taken < 5)


def test_a_peek_shows_nothing_that_has_just_been_claimed(acme: Consumer) -> None:
    events = acme.send_some(4)
    acme.consume(2)
    acme.in_a_hurry().lease(1)

    assert ids(acme.in_another_process().in_a_hurry().peek().events) == ids(events[3:])


def test_no_call_sees_another_tenant(acme: Consumer) -> None:
    globex = acme.of("globex")
    (theirs,) = globex.send(new_event(b'{"whose":"theirs"}'))
    (ours,) = acme.send(new_event(b'{"whose":"ours"}'))

    assert acme.get(theirs.event_id) is None
    assert ids(acme.peek().events) == [ours.event_id]
    claimed = acme.consume()
    assert (ids(claimed.events), claimed.more) == ([ours.event_id], False)
    assert acme.replay(theirs.event_id) is None
    assert acme.erase(theirs.event_id) is False
    assert ids(globex.consume().events) == [theirs.event_id]


def test_claims_at_the_same_time_share_the_events_out(acme: Consumer) -> None:
    events = acme.send_some(150)
    acme.harness.settle()
    processes = [acme.in_a_hurry(), acme.in_a_hurry().in_another_process()]

    def take(worker: int) -> list[str]:
        taken = []
        while page := processes[worker % 2].consume(7).events:
            taken += ids(page)
        return taken

    taken = at_the_same_time(6, take)
    assert sorted(event_id for each in taken for event_id in each) == sorted(ids(events))
    place = {event_id: position for position, event_id in enumerate(ids(events))}
    assert all([place[one] for one in each] == sorted(place[one] for one in each) for each in taken)


def test_an_erased_event_is_gone(acme: Consumer) -> None:
    erased, kept = acme.send_some(2)
    acme.harness.settle()

    assert acme.erase(erased.event_id) is True
    assert acme.get(erased.event_id) is None
    assert acme.erase(erased.event_id) is False
    claimed = acme.in_a_hurry().consume()
    assert (ids(claimed.events), claimed.more) == ([kept.event_id], False)
