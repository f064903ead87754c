"""Creating, changing and deleting named inboxes."""

from dataclasses import replace

import pytest

from inbox.domain.inboxes import MAX_INBOXES, Inbox
from inbox.errors import InboxClosing, InboxExists, TooManyInboxes
from inbox.store.interface import Store
from tests.contract.consumer import Consumer
from tests.contract.samples import NOW, ids, run_concurrently
from tests.engines.harnesses import Harness

SHIPPING = Inbox("shipping", ("order.*", "*.shipped"), NOW)


def test_inbox_survives_a_restart(harness: Harness) -> None:
    assert harness.store.inboxes.save("acme", SHIPPING) is True
    harness.reopen()

    assert harness.store.inboxes.get("acme", "shipping") == SHIPPING
    assert harness.store.inboxes.get("acme", "unknown") is None
    assert harness.store.inboxes.get("globex", "shipping") is None


def test_save_replaces_event_types_and_keeps_the_creation_time(harness: Harness) -> None:
    harness.store.inboxes.save("acme", SHIPPING)

    assert harness.another().inboxes.save("acme", Inbox("shipping", None, NOW + 5)) is False
    assert harness.store.inboxes.get("acme", "shipping") == replace(SHIPPING, event_types=None)
    assert harness.store.inboxes.save("acme", SHIPPING) is False
    assert harness.another().inboxes.get("acme", "shipping") == SHIPPING


def test_existing_inbox_is_not_replaced_unless_requested(harness: Harness) -> None:
    assert harness.store.inboxes.save("acme", SHIPPING, replace=False) is True

    for process in (harness.store, harness.another()):
        with pytest.raises(InboxExists):
            process.inboxes.save("acme", Inbox("shipping", None, NOW + 5), replace=False)
    assert harness.store.inboxes.all("acme") == [SHIPPING]
    assert harness.store.inboxes.save("globex", SHIPPING, replace=False) is True
    harness.store.inboxes.close("acme", "shipping")
    with pytest.raises(InboxClosing):
        harness.store.inboxes.save("acme", SHIPPING, replace=False)


def test_one_of_concurrent_creates_succeeds(harness: Harness) -> None:
    processes = [harness.store, harness.another()]

    def create(worker: int) -> bool:
        try:
            return processes[worker % 2].inboxes.save("acme", Inbox("shipping", (f"t{worker}",), NOW), replace=False)
        except InboxExists:
            return False

    created = run_concurrently(6, create)
    assert created.count(True) == 1
    assert harness.store.inboxes.all("acme") == [Inbox("shipping", (f"t{created.index(True)}",), NOW)]


def test_inboxes_are_listed_by_name(store: Store) -> None:
    inboxes = [Inbox(name, None, NOW) for name in ("3", "a", "a-b", "b")]
    for inbox in inboxes[::-1]:
        store.inboxes.save("acme", inbox)
    store.inboxes.save("globex", SHIPPING)

    assert store.inboxes.all("acme") == inboxes
    assert store.inboxes.all("initech") == []


def test_number_of_inboxes_is_limited(store: Store) -> None:
    inboxes = [Inbox(f"inbox-{number}", None, NOW) for number in range(MAX_INBOXES + 1)]
    for inbox in inboxes[:-1]:
        assert store.inboxes.save("acme", inbox) is True

    for replace_existing in (True, False):
        with pytest.raises(TooManyInboxes):
            store.inboxes.save("acme", inboxes[-1], replace=replace_existing)
    assert store.inboxes.get("acme", inboxes[-1].name) is None
    assert len(store.inboxes.all("acme")) == MAX_INBOXES
    assert store.inboxes.save("acme", replace(inboxes[0], event_types=("a",))) is False
    assert store.inboxes.save("globex", inboxes[-1]) is True
    delete_inbox(store, "acme", inboxes[0].name)
    assert store.inboxes.save("acme", inboxes[-1]) is True


def test_put_works_with_the_maximum_number_of_inboxes(acme: Consumer) -> None:
    for number in range(MAX_INBOXES):
        acme.in_inbox(f"inbox-{number}").create_inbox()
    events = acme.send_some(3)

    for consumer in (acme, acme.in_inbox("inbox-0"), acme.in_inbox(f"inbox-{MAX_INBOXES - 1}")):
        assert ids(consumer.consume().events) == ids(events)


def test_close_hides_the_inbox_and_returns_true_if_it_existed(acme: Consumer) -> None:
    inboxes = acme.harness.store.inboxes
    assert inboxes.close("acme", "shipping") is False
    inboxes.save("acme", SHIPPING)
    acme.send_some(2)

    assert inboxes.close("globex", "shipping") is False
    assert acme.harness.another().inboxes.close("acme", "shipping") is True
    assert inboxes.close("acme", "shipping") is True
    assert (inboxes.get("acme", "shipping"), inboxes.all("acme")) == (None, [])
    acme.harness.settle()
    assert inboxes.delete_copies("acme", "shipping", 9) == 2
    assert inboxes.close("acme", "shipping") is False


def test_name_is_free_after_all_copies_are_deleted(acme: Consumer) -> None:
    inboxes, shipping = acme.harness.store.inboxes, acme.in_inbox("shipping")
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
    assert ids(acme.in_inbox("shipping-2").consume().events) == ids(events)
    assert ids(acme.consume().events) == ids(events)


def test_copies_of_an_open_inbox_are_not_deleted(acme: Consumer) -> None:
    inboxes, shipping = acme.harness.store.inboxes, acme.in_inbox("shipping")
    shipping.create_inbox()
    delete_inbox(acme.harness.store, "acme", "shipping")
    shipping.create_inbox()
    events = acme.send_some(2)
    acme.harness.settle()

    assert inboxes.delete_copies("acme", "shipping", 9) == 0
    assert inboxes.delete_copies("acme", "unknown", 9) == 0
    assert inboxes.get("acme", "shipping") is not None
    assert ids(shipping.consume().events) == ids(events)


def test_concurrent_saves_of_one_name_create_one_inbox(harness: Harness) -> None:
    stores = [harness.store, harness.another()]

    saved = run_concurrently(4, lambda worker: stores[worker % 2].inboxes.save("acme", SHIPPING))
    assert sorted(saved) == [False, False, False, True]
    assert harness.store.inboxes.all("acme") == [SHIPPING]


def test_concurrent_saves_do_not_exceed_the_limit(harness: Harness) -> None:
    stores = [harness.store, harness.another()]
    for number in range(MAX_INBOXES - 1):
        harness.store.inboxes.save("acme", Inbox(f"inbox-{number}", None, NOW))

    def save(worker: int) -> bool:
        try:
            return stores[worker % 2].inboxes.save("acme", Inbox(f"late-{worker}", None, NOW))
        except TooManyInboxes:
            return False

    assert sum(run_concurrently(4, save)) == 1
    assert len(harness.store.inboxes.all("acme")) == MAX_INBOXES


def delete_inbox(store: Store, tenant_id: str, name: str) -> None:
    store.inboxes.close(tenant_id, name)
    while store.inboxes.delete_copies(tenant_id, name, 100) == 100:
        pass
