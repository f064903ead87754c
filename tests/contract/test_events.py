"""What a store promises about events: `inbox.store.port.EventStore`, sentence by sentence."""

import threading

import pytest

from inbox.events import Event, Order, Status
from inbox.store.port import Store
from tests.contract.samples import LATER, NOW, ids, new_event, numbered, page_of
from tests.engines.harnesses import Harness


def test_what_is_put_can_be_got(store: Store) -> None:
    event = new_event(b'{"text":"\xc3\xa9\xf0\x9f\x8e\x89","n":1.0}')
    store.events.put("acme", [event], NOW, LATER)

    assert store.events.get("acme", event.event_id, NOW) == Event(
        event.event_id, "order.created", NOW, Status.UNDELIVERED, 0, None, event.payload
    )


def test_put_answers_one_outcome_for_each_in_order(store: Store) -> None:
    events = numbered(3)
    stored = store.events.put("acme", events, NOW, LATER)

    assert [each.event_id for each in stored] == ids(events)
    assert [(each.event_type, each.timestamp_ms, each.replayed) for each in stored] == [
        ("order.created", NOW, False)
    ] * 3


def test_an_event_may_have_no_type(store: Store) -> None:
    event = new_event(event_type=None)
    store.events.put("acme", [event], NOW, LATER)

    found = store.events.get("acme", event.event_id, NOW)
    assert found is not None
    assert found.event_type is None


def test_what_was_put_survives_a_restart(harness: Harness) -> None:
    events = numbered(3)
    harness.store.events.put("acme", events, NOW, LATER)
    harness.reopen()
    harness.settle()

    assert ids(harness.store.events.claim("acme", page_of(10), NOW).events) == ids(events)


def test_what_was_claimed_stays_claimed_after_a_restart(harness: Harness) -> None:
    events = numbered(3)
    harness.store.events.put("acme", events, NOW, LATER)
    harness.settle()
    harness.store.events.claim("acme", page_of(2), NOW)
    harness.reopen()
    harness.settle()

    assert ids(harness.store.events.claim("acme", page_of(10), NOW).events) == ids(events[2:])


def test_events_of_one_millisecond_come_out_in_the_order_they_went_in(harness: Harness) -> None:
    events = numbered(50)
    stores = [harness.store, harness.another()]
    for position, event in enumerate(events):
        stores[position % 2].events.put("acme", [event], NOW, LATER)
    harness.settle()

    assert ids(harness.store.events.claim("acme", page_of(100), NOW).events) == ids(events)


def test_a_clock_that_steps_back_changes_no_order(harness: Harness) -> None:
    events = numbered(3)
    for event, now_ms in zip(events, (NOW, NOW + 5, NOW - 3_600_000), strict=True):
        harness.store.events.put("acme", [event], now_ms, LATER)
    harness.settle()

    claimed = harness.store.events.claim("acme", page_of(10), NOW).events
    assert ids(claimed) == ids(events)
    assert [event.timestamp_ms for event in claimed] == [NOW, NOW + 5, NOW + 5]


def test_a_claim_marks_events_delivered(harness: Harness) -> None:
    event = new_event()
    harness.store.events.put("acme", [event], NOW, LATER)
    harness.settle()

    claimed = harness.store.events.claim("acme", page_of(10), NOW + 5).events
    delivered = Event(event.event_id, "order.created", NOW, Status.DELIVERED, 1, NOW + 5, event.payload)
    assert claimed == [delivered]
    assert harness.store.events.get("acme", event.event_id, NOW) == delivered


def test_a_claim_takes_the_oldest_and_says_whether_more_remain(harness: Harness) -> None:
    events = numbered(5)
    harness.store.events.put("acme", events, NOW, LATER)
    harness.settle()

    taken = [harness.store.events.claim("acme", page_of(2), NOW) for _ in range(4)]
    assert [ids(page.events) for page in taken] == [ids(events[0:2]), ids(events[2:4]), ids(events[4:]), []]
    assert [page.more for page in taken] == [True, True, False, False]


def test_a_claim_that_takes_the_last_says_that_none_remain(harness: Harness) -> None:
    harness.store.events.put("acme", numbered(2), NOW, LATER)
    harness.settle()

    assert harness.store.events.claim("acme", page_of(2), NOW).more is False


def test_a_page_changes_nothing_and_turns_round(harness: Harness) -> None:
    events = numbered(3)
    harness.store.events.put("acme", events, NOW, LATER)
    harness.settle()

    oldest = harness.store.events.page("acme", Status.UNDELIVERED, Order.OLDEST, page_of(2), NOW)
    newest = harness.store.events.page("acme", Status.UNDELIVERED, Order.NEWEST, page_of(2), NOW)
    assert (ids(oldest.events), oldest.more) == (ids(events[:2]), True)
    assert (ids(newest.events), newest.more) == (ids(events[:0:-1]), True)
    assert ids(harness.store.events.claim("acme", page_of(10), NOW).events) == ids(events)


@pytest.mark.parametrize(("payload_bytes", "taken"), [(1, 1), (100, 1), (101, 2), (250, 3), (500, 5), (1000, 5)])
def test_a_page_ends_once_its_payloads_are_large_enough(harness: Harness, payload_bytes: int, taken: int) -> None:
    events = [new_event(b'{"n":"' + b"x" * 92 + b'"}') for _ in range(5)]
    assert {len(event.payload) for event in events} == {100}
    harness.store.events.put("acme", events, NOW, LATER)
    harness.settle()

    size = page_of(9, payload_bytes)
    for order, expected in ((Order.OLDEST, ids(events)), (Order.NEWEST, ids(events)[::-1])):
        page = harness.store.events.page("acme", Status.UNDELIVERED, order, size, NOW)
        assert (ids(page.events), page.more) == (expected[:taken], taken < 5)
    claimed = harness.store.events.claim("acme", size, NOW)
    assert (ids(claimed.events), claimed.more) == (ids(events)[:taken], taken < 5)


def test_a_page_is_of_one_status(harness: Harness) -> None:
    events = numbered(3)
    harness.store.events.put("acme", events, NOW, LATER)
    harness.settle()
    harness.store.events.claim("acme", page_of(1), NOW)
    harness.settle()

    assert ids(harness.store.events.page("acme", Status.DELIVERED, Order.OLDEST, page_of(9), NOW).events) == ids(
        events[:1]
    )
    assert ids(harness.store.events.page("acme", Status.UNDELIVERED, Order.OLDEST, page_of(9), NOW).events) == ids(
        events[1:]
    )


def test_a_page_shows_nothing_that_has_just_been_claimed(harness: Harness) -> None:
    events = numbered(3)
    harness.store.events.put("acme", events, NOW, LATER)
    harness.settle()
    harness.store.events.claim("acme", page_of(2), NOW)

    page = harness.another().events.page("acme", Status.UNDELIVERED, Order.OLDEST, page_of(9), NOW)
    assert ids(page.events) == ids(events[2:])


def test_no_call_sees_another_tenant(harness: Harness) -> None:
    theirs, ours = new_event(b'{"whose":"theirs"}'), new_event(b'{"whose":"ours"}')
    harness.store.events.put("globex", [theirs], NOW, LATER)
    harness.store.events.put("acme", [ours], NOW, LATER)
    harness.settle()

    assert harness.store.events.get("acme", theirs.event_id, NOW) is None
    assert ids(harness.store.events.page("acme", Status.UNDELIVERED, Order.OLDEST, page_of(9), NOW).events) == [
        ours.event_id
    ]
    claimed = harness.store.events.claim("acme", page_of(9), NOW)
    assert (ids(claimed.events), claimed.more) == ([ours.event_id], False)
    assert ids(harness.store.events.claim("globex", page_of(9), NOW).events) == [theirs.event_id]


def test_claims_at_the_same_time_share_the_events_out(harness: Harness) -> None:
    events = numbered(300)
    harness.store.events.put("acme", events, NOW, LATER)
    harness.settle()
    stores = [harness.store, harness.another()]
    taken: list[list[str]] = [[] for _ in range(6)]

    def take(worker: int) -> None:
        while page := stores[worker % 2].events.claim("acme", page_of(7), NOW).events:
            taken[worker].extend(ids(page))

    threads = [threading.Thread(target=take, args=(worker,)) for worker in range(len(taken))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(event_id for each in taken for event_id in each) == sorted(ids(events))
    place = {event_id: position for position, event_id in enumerate(ids(events))}
    assert all([place[one] for one in each] == sorted(place[one] for one in each) for each in taken)


def test_an_expired_event_is_as_good_as_gone(harness: Harness) -> None:
    gone, kept = new_event(), new_event()
    harness.store.events.put("acme", [gone], NOW, NOW // 1000 + 10)
    harness.store.events.put("acme", [kept], NOW, LATER)
    harness.settle()
    before, after = NOW + 9_000, NOW + 10_000

    assert harness.store.events.get("acme", gone.event_id, before) is not None
    assert harness.store.events.get("acme", gone.event_id, after) is None
    for order in Order:
        page = harness.store.events.page("acme", Status.UNDELIVERED, order, page_of(1), after)
        assert (ids(page.events), page.more) == ([kept.event_id], False)
    claimed = harness.store.events.claim("acme", page_of(1), after)
    assert (ids(claimed.events), claimed.more) == ([kept.event_id], False)
