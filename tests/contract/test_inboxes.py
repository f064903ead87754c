"""What a store promises about named inboxes: `inbox.store.port.InboxStore`."""

from dataclasses import replace

import pytest

from inbox.domain.inboxes import MAX_INBOXES, Inbox
from inbox.errors import InboxClosing, InboxExists, TooManyInboxes
from inbox.store.interface import Store
from tests.contract.consumer import Consumer
from tests.contract.samples import NOW, at_the_same_time, ids
from tests.engines.harnesses import Harness

SHIPPING = Inbox("shipping", ("order.*", "*.shipped"), NOW)


def test_an_inbox_is_kept(harness: Harness) -> None:
    assert harness.store.inboxes.save("acme", SHIPPING) is True
    harness.reopen()

    assert harness.store.inboxes.get("acme", "shipping") == SHIPPING
    assert harness.store.inboxes.get("acme", "unknown") is None
    assert harness.store.inboxes.get("globex", "shipping") is None


def test_an_inbox_gets_other_event_types_and_stays_as_old_as_it_is(harness: Harness) -> None:
    harness.store.inboxes.save("acme", SHIPPING)

    assert harness.another().inboxes.save("acme", Inbox("shipping", None, NOW + 5)) is False
    assert harness.store.inboxes.get("acme", "shipping") == replace(SHIPPING, event_types=None)
    assert harness.store.inboxes.save("acme", SHIPPING) is False
    assert harness.another().inboxes.get("acme", "shipping") == SHIPPING


def test_existing_inbox_is_not_replaced_unless_asked_for(harness: Harness) -> None:
    assert harness.store.inboxes.save("acme", SHIPPING, replace=False) is True

    for process in (harness.store, harness.another()):
        with pytest.raises(InboxExists):
            process.inboxes.save("acme", Inbox("shipping", None, NOW + 5), replace=False)
    assert harness.store.inboxes.all("acme") == [SHIPPING]
    assert harness.store.inboxes.save("globex", SHIPPING, replace=False) is True
    harness.store.inboxes.close("acme", "shipping")
    with pytest.raises(InboxClosing):
        harness.store.inboxes.save("acme", SHIPPING, replace=False)


def test_limit_of_inboxes_holds_for_those_that_replace_nothing(store: Store) -> None:
    for number in range(MAX_INBOXES):
        store.inboxes.save("acme", Inbox(f"inbox-{number}", None, NOW), replace=False)

    with pytest.raises(TooManyInboxes):
        store.inboxes.save("acme", SHIPPING, replace=False)


def test_one_of_many_creates_the_inbox(harness: Harness) -> None:
    processes = [harness.store, harness.another()]

    def create(worker: int) -> bool:
        try:
            return processes[worker % 2].inboxes.save("acme", Inbox("shipping", (f"t{worker}",), NOW), replace=False)
        except InboxExists:
            return False

    made = at_the_same_time(6, create)
    assert made.count(True) == 1
    assert harness.store.inboxes.all("acme") == [Inbox("shipping", (f"t{made.index(True)}",), NOW)]


def test_inboxes_are_listed_by_name(store: Store) -> None:
    inboxes = [Inbox(name, None, NOW) for name in ("3", "a", "a-b", "b")]
    for inbox in inboxes[::-1]:
        store.inboxes.save("acme", inbox)
    store.inboxes.save("globex", SHIPPING)

    assert store.inboxes.all("acme") == inboxes
    assert store.inboxes.all("initech") == []


def test_a_tenant_has_so_many_inboxes_at_most(store: Store) -> None:
    inboxes = [Inbox(f"inbox-{number}", None, NOW) for number in range(MAX_INBOXES + 1)]
    for inbox in inboxes[:-1]:
        assert store.inboxes.save("acme", inbox) is True

    with pytest.raises(TooManyInboxes):
        store.inboxes.save("acme", inboxes[-1])
    assert store.inboxes.get("acme", inboxes[-1].name) is None
    assert len(store.inboxes.all("acme")) == MAX_INBOXES
    assert store.inboxes.save("acme", replace(inboxes[0], event_types=("a",))) is False
    assert store.inboxes.save("globex", inboxes[-1]) is True
    remove(store, "acme", inboxes[0].name)
    assert store.inboxes.save("acme", inboxes[-1]) is True


def test_puts_go_on_with_as_many_inboxes_as_there_may_be(acme: Consumer) -> None:
    for number in range(MAX_INBOXES):
        acme.at(f"inbox-{number}").make()
    events = acme.send_some(3)

    for consumer in (acme, acme.at("inbox-0"), acme.at(f"inbox-{MAX_INBOXES - 1}")):
        assert ids(consumer.consume().events) == ids(events)


def test_a_closed_inbox_is_seen_by_nobody(harness: Harness) -> None:
    harness.store.inboxes.save("acme", SHIPPING)

    assert harness.another().inboxes.close("acme", "shipping") is True
    assert harness.store.inboxes.get("acme", "shipping") is None
    assert harness.store.inboxes.all("acme") == []


def test_closing_says_whether_there_was_an_inbox_or_its_rest(acme: Consumer) -> None:
    inboxes = acme.harness.store.inboxes
    assert inboxes.close("acme", "shipping") is False
    inboxes.save("acme", SHIPPING)
    acme.send_some(2)

    assert inboxes.close("globex", "shipping") is False
    assert [inboxes.close("acme", "shipping"), inboxes.close("acme", "shipping")] == [True, True]
    acme.harness.settle()
    assert inboxes.delete_copies("acme", "shipping", 9) == 2
    assert inboxes.close("acme", "shipping") is False


def test_an_inbox_is_cleared_bit_by_bit_and_its_name_is_free_only_then(acme: Consumer) -> None:
    inboxes, shipping = acme.harness.store.inboxes, acme.at("shipping")
    inboxes.save("acme", SHIPPING)
    inboxes.save("acme", Inbox("shipping-2", None, NOW))
    events = acme.send_some(5)
    shipping.consume(1)
    shipping.lease(1)
    inboxes.close("acme", "shipping")
    acme.harness.settle()

    for _ in range(2):
        with pytest.raises(InboxClosing):
            inboxes.save("acme", SHIPPING)
        assert inboxes.delete_copies("acme", "shipping", 2) == 2
        acme.harness.settle()
    with pytest.raises(InboxClosing):
        inboxes.save("acme", SHIPPING)
    assert inboxes.delete_copies("acme", "shipping", 2) == 1
    assert inboxes.save("acme", SHIPPING) is True
    for event in events:
        assert shipping.get(event.event_id) is None
    assert shipping.history() == []
    claimed = shipping.consume()
    assert (claimed.events, claimed.more) == ([], False)
    assert ids(acme.at("shipping-2").consume().events) == ids(events)
    assert ids(acme.consume().events) == ids(events)


def test_an_open_inbox_is_not_cleared(acme: Consumer) -> None:
    inboxes, shipping = acme.harness.store.inboxes, acme.at("shipping")
    shipping.make()
    remove(acme.harness.store, "acme", "shipping")
    shipping.make()
    events = acme.send_some(2)
    acme.harness.settle()

    assert inboxes.delete_copies("acme", "shipping", 9) == 0
    assert inboxes.delete_copies("acme", "unknown", 9) == 0
    assert inboxes.get("acme", "shipping") is not None
    assert ids(shipping.consume().events) == ids(events)


def test_inboxes_of_one_name_saved_at_the_same_time_are_one(harness: Harness) -> None:
    stores = [harness.store, harness.another()]

    saved = at_the_same_time(4, lambda worker: stores[worker % 2].inboxes.save("acme", SHIPPING))
    assert sorted(saved) == [False, False, False, True]
    assert harness.store.inboxes.all("acme") == [SHIPPING]


def test_inboxes_saved_at_the_same_time_are_no_more_than_there_may_be(harness: Harness) -> None:
    stores = [harness.store, harness.another()]
    for number in range(MAX_INBOXES - 1):
        harness.store.inboxes.save("acme", Inbox(f"inbox-{number}", None, NOW))

    def save(worker: int) -> bool:
        try:
            return stores[worker % 2].inboxes.save("acme", Inbox(f"late-{worker}", None, NOW))
        except TooManyInboxes:
            return False

    assert sum(at_the_same_time(4, save)) == 1
    assert len(harness.store.inboxes.all("acme")) == MAX_INBOXES


def remove(store: Store, tenant_id: str, name: str) -> None:
    store.inboxes.close(tenant_id, name)
    while store.inboxes.delete_copies(tenant_id, name, 100) == 100:
        pass
