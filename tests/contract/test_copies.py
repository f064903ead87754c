"""Copies of events in named inboxes, each with its own status."""

import uuid

import pytest

from inbox.domain.events import Event, NewEvent, Status
from tests.contract.consumer import Consumer
from tests.contract.samples import MINUTE, NOW, ids, keyed_event, new_event, numbered, receipt, receipts


def test_copy_is_the_event_in_another_inbox(acme: Consumer) -> None:
    shipping = acme.in_inbox("shipping")
    shipping.create_inbox()
    (event,) = acme.send(new_event())

    copy = Event(event.event_id, "order.created", NOW, Status.UNDELIVERED, 0, None, event.payload, "shipping")
    assert shipping.get(event.event_id) == copy
    assert shipping.peek().events == [copy]
    assert shipping.history() == [copy]
    assert [each.inbox for each in acme.peek().events] == ["default"]


def test_copies_have_separate_statuses(acme: Consumer) -> None:
    shipping, billing = acme.in_inbox("shipping"), acme.in_inbox("billing")
    shipping.create_inbox()
    billing.create_inbox()
    (event,) = acme.send(new_event())
    leased = shipping.lease().events
    billing.consume(at=NOW + 5)

    found = [consumer.get(event.event_id) for consumer in (acme, shipping, billing)]
    assert [(each.status, each.deliveries, each.delivered_at_ms) for each in found if each] == [
        (Status.UNDELIVERED, 0, None),
        (Status.LEASED, 1, None),
        (Status.DELIVERED, 1, NOW + 5),
    ]
    billing.replay(event.event_id)
    assert acme.acknowledge(receipts(leased), NOW + 6) == [True]
    found = [consumer.get(event.event_id) for consumer in (acme, shipping, billing)]
    assert [each.status for each in found if each] == [Status.UNDELIVERED, Status.DELIVERED, Status.UNDELIVERED]


def test_receipts_of_several_inboxes_can_be_mixed(acme: Consumer) -> None:
    shipping = acme.in_inbox("shipping")
    shipping.create_inbox()
    acme.send_some(2)
    mixed = [
        receipt(event) for pair in zip(acme.lease().events, shipping.lease().events, strict=True) for event in pair
    ]

    assert acme.extend(mixed, NOW + 2 * MINUTE) == [True] * 4
    assert acme.acknowledge([*mixed[:2], mixed[0]]) == [True] * 3
    assert acme.release(mixed[2:]) == [True] * 2
    assert [len(acme.consume().events), len(shipping.consume().events)] == [1, 1]


@pytest.mark.parametrize(
    ("patterns", "received"),
    [
        ((), ["order.created", "order.shipped", "orders", "order.", "Order.created", "a/b:c_d-e", None]),
        (("order.*",), ["order.created", "order.shipped", "order."]),
        (("*.created",), ["order.created", "Order.created"]),
        (("o*d", "a/b:c_d-e"), ["order.created", "order.shipped", "a/b:c_d-e"]),
        (("order.created",), ["order.created"]),
        (("*",), ["order.created", "order.shipped", "orders", "order.", "Order.created", "a/b:c_d-e"]),
        (("order.created", "order.*"), ["order.created", "order.shipped", "order."]),
        (("order",), []),
    ],
)
def test_inbox_receives_events_of_its_types(
    acme: Consumer, patterns: tuple[str, ...], received: list[str | None]
) -> None:
    chosen = acme.in_inbox("chosen")
    chosen.create_inbox(*patterns)
    types = ["order.created", "order.shipped", "orders", "order.", "Order.created", "a/b:c_d-e", None]
    acme.send(*[new_event(event_type=each) for each in types])

    assert [event.event_type for event in chosen.consume().events] == received
    assert len(acme.consume().events) == len(types)


def test_events_sent_before_the_inbox_is_created_are_not_copied(acme: Consumer) -> None:
    shipping, other_process = acme.in_inbox("shipping"), acme.in_another_process()
    before = [acme.send(new_event())[0], other_process.send(new_event())[0]]
    shipping.create_inbox()
    # Both processes cached the tenant's inboxes in their first put.
    after = [other_process.send(new_event())[0], acme.send(new_event())[0]]

    assert [shipping.get(event.event_id) for event in before] == [None, None]
    assert ids(shipping.consume().events) == ids(after)


def test_changed_event_types_apply_at_once_in_every_process(acme: Consumer) -> None:
    chosen, other_process = acme.in_inbox("chosen"), acme.in_another_process()
    chosen.create_inbox("a")
    other_process.send(new_event(event_type="a"))
    chosen.create_inbox("b")
    other_process.send(new_event(event_type="a"), new_event(event_type="b"))

    assert [event.event_type for event in chosen.consume().events] == ["a", "b"]


def test_closed_inbox_receives_no_copies(acme: Consumer) -> None:
    shipping, other_process = acme.in_inbox("shipping"), acme.in_another_process()
    shipping.create_inbox()
    other_process.send(new_event())
    acme.harness.store.inboxes.close("acme", "shipping")
    (event,) = other_process.send(new_event())

    assert shipping.get(event.event_id) is None
    acme.harness.settle()
    assert acme.harness.store.inboxes.delete_copies("acme", "shipping", 9) == 1


def test_inbox_name_can_be_a_number(acme: Consumer) -> None:
    third = acme.in_inbox("3")
    third.create_inbox()
    events = acme.send_some(3)

    assert ids(acme.consume(2).events) == ids(events[:2])
    assert ids(third.consume(1).events) == ids(events[:1])
    assert ids(acme.consume().events) == ids(events[2:])
    assert ids(third.consume().events) == ids(events[1:])


@pytest.mark.parametrize("batch_size", [1, 30])
def test_repeated_event_is_copied_once(acme: Consumer, batch_size: int) -> None:
    shipping, typed = acme.in_inbox("shipping"), acme.in_inbox("typed")
    shipping.create_inbox()
    typed.create_inbox("order.*")
    events = [keyed_event(str(uuid.uuid4())) for _ in range(batch_size)]
    acme.put(events)
    shipping.consume(100)

    assert all(stored.repeated for stored in acme.put(events, at=NOW + 5))
    assert shipping.consume(100).events == []
    assert len(shipping.history()) == batch_size
    assert typed.history() == []


def test_repeated_event_is_not_copied_to_a_newer_inbox(acme: Consumer) -> None:
    event = keyed_event(str(uuid.uuid4()))
    acme.put([event])
    acme.in_inbox("shipping").create_inbox()
    acme.put([event])

    assert acme.in_inbox("shipping").get(event.event_id) is None


def test_copies_keep_the_order_of_a_batch(acme: Consumer) -> None:
    shipping = acme.in_inbox("shipping")
    shipping.create_inbox("a")
    events: list[NewEvent] = [event for _ in range(20) for event in (*numbered(1, "a"), *numbered(1, "b"))]
    acme.send(*events)

    assert ids(shipping.consume(100).events) == ids([event for event in events if event.event_type == "a"])
    assert ids(acme.consume(100).events) == ids(events)


def test_erasing_an_event_erases_its_copies(acme: Consumer) -> None:
    shipping, billing = acme.in_inbox("shipping"), acme.in_inbox("billing")
    shipping.create_inbox()
    billing.create_inbox()
    erased, kept = acme.send_some(2)
    leased = receipt(shipping.lease(1).events[0])
    billing.consume(1)

    assert acme.erase(erased.event_id) is True
    for consumer in (acme, shipping, billing):
        assert consumer.get(erased.event_id) is None
        assert ids(consumer.without_settling().consume().events) == [kept.event_id]
    assert acme.acknowledge([leased]) == [False]
    assert acme.erase(erased.event_id) is False
