"""Putting, reading, peeking and claiming events."""

import pytest

from inbox.domain.events import DEFAULT_INBOX, Event, Order, Status
from tests.contract.consumer import Consumer
from tests.contract.samples import LATER_S, NOW, ids, new_event, numbered, page_of, run_concurrently
from tests.engines.harnesses import Harness


def test_put_event_can_be_read(acme: Consumer) -> None:
    (event,) = acme.send(new_event(b'{"text":"\xc3\xa9\xf0\x9f\x8e\x89","n":1.0}'))

    assert acme.get(event.event_id) == Event(
        event.event_id, "order.created", NOW, Status.UNDELIVERED, 0, None, event.payload
    )


def test_put_returns_one_result_per_event_in_order(harness: Harness) -> None:
    events = numbered(3)
    stored = harness.store.events.put("acme", events, NOW, LATER_S)

    assert [each.event_id for each in stored] == ids(events)
    assert [(each.event_type, each.timestamp_ms, each.repeated) for each in stored] == [
        ("order.created", NOW, False)
    ] * 3


def test_events_and_claims_survive_a_restart(acme: Consumer) -> None:
    events = acme.send_some(3)
    acme.consume(2)
    acme.harness.reopen()

    assert ids(acme.consume().events) == ids(events[2:])


def test_events_of_one_millisecond_keep_their_order(acme: Consumer) -> None:
    events = numbered(50)
    processes = [acme, acme.in_another_process()]
    for position, event in enumerate(events):
        processes[position % 2].send(event)

    assert ids(acme.consume(100).events) == ids(events)


def test_clock_step_back_keeps_the_order(acme: Consumer) -> None:
    events = numbered(3)
    for event, now_ms in zip(events, (NOW, NOW + 5, NOW - 3_600_000), strict=True):
        acme.send(event, at=now_ms)

    claimed = acme.consume().events
    assert ids(claimed) == ids(events)
    assert [event.timestamp_ms for event in claimed] == [NOW, NOW + 5, NOW + 5]


def test_claim_marks_events_delivered(acme: Consumer) -> None:
    (event,) = acme.send(new_event())

    claimed = acme.consume(at=NOW + 5).events
    delivered = Event(event.event_id, "order.created", NOW, Status.DELIVERED, 1, NOW + 5, event.payload)
    assert claimed == [delivered]
    assert acme.get(event.event_id) == delivered


def test_claim_returns_the_oldest_events_and_reports_whether_more_remain(acme: Consumer) -> None:
    events = acme.send_some(5)
    acme.harness.settle()

    pages = [acme.without_settling().consume(2) for _ in range(4)]
    assert [ids(page.events) for page in pages] == [ids(events[0:2]), ids(events[2:4]), ids(events[4:]), []]
    assert [page.more for page in pages] == [True, True, False, False]
    acme.send_some(2)
    assert acme.consume(2).more is False


def test_peek_changes_nothing_in_either_order(acme: Consumer) -> None:
    events = acme.send_some(3)

    oldest, newest = acme.peek(2), acme.peek(2, order=Order.NEWEST)
    assert (ids(oldest.events), oldest.more) == (ids(events[:2]), True)
    assert (ids(newest.events), newest.more) == (ids(events[:0:-1]), True)
    assert ids(acme.consume().events) == ids(events)


@pytest.mark.parametrize(("payload_bytes", "event_count"), [(1, 1), (100, 1), (101, 2), (250, 3), (500, 5), (1000, 5)])
def test_page_ends_when_its_payloads_reach_the_page_size(
    harness: Harness, payload_bytes: int, event_count: int
) -> None:
    events = [new_event(b'{"n":"' + b"x" * 92 + b'"}') for _ in range(5)]
    assert {len(event.payload) for event in events} == {100}
    harness.store.events.put("acme", events, NOW, LATER_S)
    harness.settle()

    size = page_of(9, payload_bytes)
    for order, expected in ((Order.OLDEST, ids(events)), (Order.NEWEST, ids(events)[::-1])):
        page = harness.store.events.peek("acme", DEFAULT_INBOX, order, size, NOW)
        assert (ids(page.events), page.more) == (expected[:event_count], event_count < 5)
    claimed = harness.store.events.claim("acme", DEFAULT_INBOX, size, NOW)
    assert (ids(claimed.events), claimed.more) == (ids(events)[:event_count], event_count < 5)


def test_peek_omits_events_just_claimed(acme: Consumer) -> None:
    events = acme.send_some(4)
    acme.consume(2)
    acme.without_settling().lease(1)

    assert ids(acme.in_another_process().without_settling().peek().events) == ids(events[3:])


def test_tenants_do_not_see_each_others_events(acme: Consumer) -> None:
    globex = acme.in_tenant("globex")
    (theirs,) = globex.send(new_event(b'{"whose":"theirs"}'))
    (ours,) = acme.send(new_event(b'{"whose":"ours"}'))

    assert acme.get(theirs.event_id) is None
    assert ids(acme.peek().events) == [ours.event_id]
    claimed = acme.consume()
    assert (ids(claimed.events), claimed.more) == ([ours.event_id], False)
    assert acme.replay(theirs.event_id) is None
    assert acme.erase(theirs.event_id) is False
    assert ids(globex.consume().events) == [theirs.event_id]


def test_concurrent_claims_share_the_events(acme: Consumer) -> None:
    events = acme.send_some(150)
    acme.harness.settle()
    processes = [acme.without_settling(), acme.without_settling().in_another_process()]

    def claim(worker: int) -> list[str]:
        claimed = []
        while page := processes[worker % 2].consume(7).events:
            claimed += ids(page)
        return claimed

    claimed = run_concurrently(6, claim)
    assert sorted(event_id for each in claimed for event_id in each) == sorted(ids(events))
    positions = {event_id: position for position, event_id in enumerate(ids(events))}
    assert all([positions[one] for one in each] == sorted(positions[one] for one in each) for each in claimed)
