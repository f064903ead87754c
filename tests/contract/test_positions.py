"""Listing events: pages and positions."""

import re

import pytest

from inbox.domain.events import Order, Selection
from inbox.errors import InvalidRequest
from tests.contract.consumer import Consumer
from tests.contract.samples import NOW, ids, in_order, new_event, page_of

ORDERS = pytest.mark.parametrize("order", list(Order))


@ORDERS
@pytest.mark.parametrize("limit", [1, 3, 4, 11, 12, 13])
def test_successive_pages_show_everything_once(acme: Consumer, order: Order, limit: int) -> None:
    events = acme.send_some(12)
    acme.consume(4)
    acme.lease(4)

    listing = acme.page(order=order, limit=limit)
    assert len(listing.events) <= limit
    assert ids(acme.history(order=order, limit=limit)) == in_order(events, order)


@ORDERS
def test_position_is_stable_while_events_arrive_and_change(acme: Consumer, order: Order) -> None:
    events = acme.send_some(6)
    listing = acme.page(order=order, limit=3)
    shown = ids(listing.events)
    assert shown == in_order(events, order)[:3]
    acme.erase(shown[2])
    acme.consume(4)
    (late,) = acme.send(new_event(), at=NOW + 1)

    while listing.position is not None:
        listing = acme.page(order=order, limit=2, after=listing.position)
        shown += ids(listing.events)
    assert shown == in_order([*events, late] if order == Order.OLDEST else events, order)


def test_position_is_valid_after_a_restart_and_in_other_processes(acme: Consumer) -> None:
    events = acme.send_some(4)
    after = acme.page(limit=1).position
    assert after is not None

    rest = ids(acme.in_another_process().page(after=after).events)
    acme.harness.reopen()
    assert rest == ids(acme.page(after=after).events) == ids(events[1:])


@pytest.mark.parametrize("after", ["", "nonsense", "é", "{}", "[]", "null", "1e400", "a" * 3000, "\x00"])
def test_invalid_position_is_refused(acme: Consumer, after: str) -> None:
    acme.send_some(1)

    with pytest.raises(InvalidRequest):
        acme.page(after=after)


@ORDERS
@pytest.mark.parametrize(("payload_bytes", "event_count"), [(1, 1), (100, 1), (101, 2), (250, 3), (1000, 5)])
def test_page_ends_when_its_payloads_reach_the_page_size(
    acme: Consumer, order: Order, payload_bytes: int, event_count: int
) -> None:
    events = acme.send(*[new_event(b'{"n":"' + b"x" * 92 + b'"}') for _ in range(5)])
    acme.harness.settle()

    page, size = acme.harness.store.events.page, page_of(9, payload_bytes)
    listing = page("acme", Selection(), order, size, None, NOW)
    shown = ids(listing.events)
    assert shown == in_order(events, order)[:event_count]
    while listing.position is not None:
        listing = page("acme", Selection(), order, size, listing.position, NOW)
        shown += ids(listing.events)
    assert shown == in_order(events, order)


@ORDERS
def test_position_of_another_tenant_reveals_nothing(acme: Consumer, order: Order) -> None:
    acme.in_tenant("globex").send_some(3)
    after = acme.in_tenant("globex").page(order=order, limit=1).position
    events = acme.send_some(3)

    try:
        shown = ids(acme.page(order=order, after=after).events)
    except InvalidRequest:
        return
    assert set(shown) <= set(ids(events))


@ORDERS
def test_forged_position_reveals_nothing(acme: Consumer, order: Order) -> None:
    events = acme.send_some(3)
    after = acme.page(order=order, limit=1).position
    assert after is not None
    truncated = {after[:length] for length in range(len(after))}
    nines = {after[:index] + "9" + after[index + 1 :] for index in range(len(after))}
    huge = {re.sub(r"\d+", digit * 19, after) for digit in "09"}
    for changed in truncated | nines | huge | {after + "0", after * 2}:
        try:
            shown = ids(acme.page(order=order, after=changed).events)
        except InvalidRequest:
            continue
        assert set(shown) <= set(ids(events))
