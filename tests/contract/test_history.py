"""Listing events: which events a selection contains."""

import pytest

from inbox.domain.events import Order, Selection, Status
from tests.contract.consumer import Consumer
from tests.contract.samples import LATER_S, MINUTE, NOW, ids, in_order, new_event, numbered, receipt
from tests.engines.harnesses import MAX_DELIVERIES

ORDERS = pytest.mark.parametrize("order", list(Order))


def send_event_for_each_state(acme: Consumer) -> dict[str, str]:
    """Returns the IDs of events by the state that they have at NOW + 10. Their timestamps are NOW, NOW + 1, …"""
    states = ["dead", "leased", "acknowledged", "lease expired", "delayed", "consumed", "new"]
    events = [acme.send(event, at=NOW + number)[0] for number, event in enumerate(numbered(len(states)))]
    for elapsed_ms in range(MAX_DELIVERIES):
        acme.lease(1, NOW + elapsed_ms, until=NOW + elapsed_ms + 1)
    acme.lease(1, NOW + 6, until=NOW + MINUTE)
    acme.acknowledge([receipt(acme.lease(1, NOW + 6).events[0])], NOW + 6)
    acme.lease(1, NOW + 6, until=NOW + 10)
    acme.release([receipt(acme.lease(1, NOW + 6).events[0])], NOW + 6, until=NOW + MINUTE)
    acme.consume(1, NOW + 6)
    return dict(zip(states, ids(events), strict=True))


@ORDERS
def test_list_contains_events_of_every_status(acme: Consumer, order: Order) -> None:
    expected = list(send_event_for_each_state(acme).values())[:: 1 if order == Order.OLDEST else -1]

    shown = acme.history(order=order, at=NOW + 10)
    assert ids(shown) == expected
    assert shown == [acme.get(event_id, NOW + 10) for event_id in expected]
    assert acme.history(order=order, at=NOW + 10) == shown


@ORDERS
@pytest.mark.parametrize("limit", [1, 100])
def test_list_by_status_considers_expired_leases(acme: Consumer, order: Order, limit: int) -> None:
    sent = send_event_for_each_state(acme)
    expected = {
        Status.UNDELIVERED: ["lease expired", "delayed", "new"],
        Status.LEASED: ["leased"],
        Status.DELIVERED: ["acknowledged", "consumed"],
        Status.DEAD: ["dead"],
    }

    for status, names in expected.items():
        shown = acme.history(Selection(status=status), order, limit, NOW + 10)
        assert ids(shown) == [sent[name] for name in names][:: 1 if order == Order.OLDEST else -1]
        assert {event.status for event in shown} == {status}


def test_status_changes_in_the_millisecond_a_lease_expires(acme: Consumer) -> None:
    (event,) = acme.send(new_event())
    acme.lease(until=NOW + 10)

    statuses = {
        at: [status for status in Status if ids(acme.history(Selection(status=status), at=at)) == [event.event_id]]
        for at in (NOW + 9, NOW + 10)
    }
    assert statuses == {NOW + 9: [Status.LEASED], NOW + 10: [Status.UNDELIVERED]}


@ORDERS
def test_list_by_event_type_contains_no_other_types(acme: Consumer, order: Order) -> None:
    types = ["a", "b", None, "a", "ab", "a.b", "A"]
    events = [acme.send(new_event(event_type=each))[0] for each in types]

    for each in ("a", "b", "ab", "a.b", "A"):
        expected = in_order([event for event in events if event.event_type == each], order)
        assert ids(acme.history(Selection(event_type=each), order)) == expected
    assert acme.history(Selection(event_type="none")) == []


@ORDERS
@pytest.mark.parametrize(
    ("since_ms", "until_ms", "expected"),
    [
        (NOW, NOW + 3, [0, 1, 2]),
        (NOW + 1, None, [1, 2, 3]),
        (None, NOW + 1, [0]),
        (NOW + 1, NOW + 3, [1, 2]),
        (NOW + 2, NOW + 2, []),
        (NOW + 3, NOW + 1, []),
        (NOW + 4, None, []),
        (None, NOW, []),
        (0, 9 * NOW, [0, 1, 2, 3]),
    ],
)
def test_list_by_time_includes_since_and_excludes_until(
    acme: Consumer, order: Order, since_ms: int | None, until_ms: int | None, expected: list[int]
) -> None:
    events = [acme.send(event, at=NOW + number)[0] for number, event in enumerate(numbered(4))]

    selection = Selection(since_ms=since_ms, until_ms=until_ms)
    assert ids(acme.history(selection, order, limit=2)) == in_order([events[number] for number in expected], order)


def test_list_combines_all_criteria(acme: Consumer) -> None:
    for number in range(12):
        acme.send(new_event(event_type="ab"[number % 2]), at=NOW + number // 2)
    acme.consume(6, NOW + 6)

    for selection, expected in {
        Selection(status=Status.DELIVERED, event_type="a"): 3,
        Selection(status=Status.UNDELIVERED, event_type="b", since_ms=NOW + 4): 2,
        Selection(status=Status.DELIVERED, event_type="b", since_ms=NOW + 1, until_ms=NOW + 2): 1,
        Selection(status=Status.DELIVERED, since_ms=NOW + 1, until_ms=NOW + 5): 4,
        Selection(event_type="a", until_ms=NOW + 4): 4,
        Selection(status=Status.DEAD, event_type="a"): 0,
    }.items():
        shown = acme.history(selection, limit=2)
        assert len({event.event_id for event in shown}) == len(shown) == expected
        assert {event.status for event in shown} <= {selection.status or event.status for event in shown}
        assert {event.event_type for event in shown} <= {selection.event_type or event.event_type for event in shown}
        assert all((selection.since_ms or 0) <= event.timestamp_ms for event in shown)
        assert all(event.timestamp_ms < (selection.until_ms or 2 * NOW) for event in shown)


def test_list_contains_events_of_one_tenant_and_inbox(acme: Consumer) -> None:
    shipping = acme.in_inbox("shipping")
    shipping.create_inbox("a")
    theirs = acme.in_tenant("globex").send_some(2)
    events = acme.send(new_event(event_type="a"), new_event(event_type="b"))
    shipping.consume()

    assert ids(acme.history(Selection())) == ids(events)
    assert [(event.inbox, event.status) for event in acme.history()] == [("default", Status.UNDELIVERED)] * 2
    assert [(event.event_id, event.inbox, event.status) for event in shipping.history()] == [
        (events[0].event_id, "shipping", Status.DELIVERED)
    ]
    assert ids(acme.in_tenant("globex").history(limit=1)) == ids(theirs)
    assert acme.in_inbox("unknown").history() == []


@ORDERS
def test_list_omits_expired_events(acme: Consumer, order: Order) -> None:
    acme.send_some(1)
    acme.send(*numbered(3), expires_at_s=NOW // 1000 + 10)
    (kept,) = acme.send(new_event(), expires_at_s=LATER_S + 1)
    at = NOW + 10_000

    for selection in (Selection(), Selection(status=Status.UNDELIVERED), Selection(event_type="order.created")):
        assert len(acme.history(selection, order, 1, at - 1_000)) == 5
        assert len(acme.history(selection, order, 1, at)) == 2
        assert ids(acme.history(selection, order, 1, LATER_S * 1000)) == [kept.event_id]


@ORDERS
def test_list_shows_no_event_twice_while_events_are_claimed(acme: Consumer, order: Order) -> None:
    acme.send_some(20)
    acme.harness.settle()
    without_settling = acme.without_settling()
    while without_settling.consume(2).events:
        shown = ids(without_settling.history(order=order, limit=50))
        assert len(shown) == len(set(shown))
