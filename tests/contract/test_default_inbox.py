"""What a store promises about turning the inbox `default` off: `inbox.store.port.InboxStore`."""

import uuid

import pytest

from inbox.domain.events import Event, NewEvent, Order, PutResult, Selection, Status
from inbox.domain.inboxes import MAX_INBOXES, Inbox
from inbox.domain.stats import Counts, UndeliveredSummary
from inbox.errors import EventLeased, IdempotencyConflict
from inbox.store.interface import Store
from tests.contract.consumer import Consumer
from tests.contract.samples import LATER, NOW, ids, keyed_event, new_event, numbered, receipts
from tests.engines.harnesses import Harness


@pytest.fixture
def off(acme: Consumer) -> Consumer:
    """The inbox `default` of a tenant that has turned it off."""
    switch(acme, enabled=False)
    return acme


def switch(consumer: Consumer, *, enabled: bool) -> None:
    consumer.harness.store.inboxes.set_default_enabled(consumer.tenant_id, enabled)


def kept(new: NewEvent, at: int = NOW) -> Event:
    """How `default` has an event that came while it was off."""
    return Event(new.event_id, new.event_type, at, Status.DELIVERED, 0, None, new.payload)


def test_default_is_on_until_it_is_turned_off(harness: Harness) -> None:
    inboxes = harness.store.inboxes
    assert inboxes.is_default_enabled("acme") is True
    for enabled in (False, False, True, True, False):
        inboxes.set_default_enabled("acme", enabled)
        assert inboxes.is_default_enabled("acme") is enabled
        assert harness.another().inboxes.is_default_enabled("acme") is enabled
    harness.reopen()
    assert harness.store.inboxes.is_default_enabled("acme") is False
    assert harness.store.inboxes.is_default_enabled("globex") is True


def test_default_is_no_named_inbox_and_does_not_count_as_one(store: Store) -> None:
    store.inboxes.set_default_enabled("acme", False)
    assert store.inboxes.all("acme") == []
    assert store.inboxes.get("acme", "default") is None
    names = [f"inbox-{number:02}" for number in range(MAX_INBOXES)]
    for name in names:
        assert store.inboxes.save("acme", Inbox(name, None, NOW)) is True
    assert [inbox.name for inbox in store.inboxes.all("acme")] == names
    assert store.inboxes.is_default_enabled("acme") is False


def test_default_stays_off_when_the_last_named_inbox_is_removed(store: Store) -> None:
    store.inboxes.set_default_enabled("acme", False)
    store.inboxes.save("acme", Inbox("crm", None, NOW))
    store.inboxes.close("acme", "crm")
    store.inboxes.delete_copies("acme", "crm", 9)
    assert store.inboxes.is_default_enabled("acme") is False


def test_events_only_go_to_named_inboxes_that_take_them(off: Consumer) -> None:
    orders, everything = off.at("orders"), off.at("everything")
    orders.make("order.*")
    everything.make()
    events = off.send(new_event(event_type="order.created"), new_event(event_type="invoice"), new_event())
    off.send(event := new_event())

    for page in (off.peek(), off.consume(), off.lease(), off.consume(attempt="a")):
        assert (page.events, page.more) == ([], False)
    assert ids(everything.peek(order=Order.NEWEST).events) == ids([event, *events[::-1]])
    assert ids(everything.consume().events) == ids([*events, event])
    assert ids(orders.lease().events) == ids([events[0], events[2], event])


def test_every_event_can_still_be_looked_back_at(off: Consumer) -> None:
    events = off.send_some(3)
    off.send(other := new_event(event_type="other"))

    assert [off.get(event.event_id) for event in events] == [kept(event) for event in events]
    assert off.history(most=2) == [kept(event) for event in (*events, other)]
    assert off.history(Selection(status=Status.DELIVERED), Order.NEWEST) == [
        kept(each) for each in (other, *events[::-1])
    ]
    assert off.history(Selection(event_type="other")) == [kept(other)]
    assert off.history(Selection(event_type="other", status=Status.DELIVERED)) == [kept(other)]
    assert off.history(Selection(status=Status.UNDELIVERED)) == []


def test_a_put_in_any_process_obeys_once_the_switch_has_returned(acme: Consumer) -> None:
    elsewhere = acme.in_another_process()
    for enabled in (False, True) * 3:
        # So that the other process knows what was before.
        elsewhere.send_some(1)
        acme.consume()
        switch(acme, enabled=enabled)
        alone, keyed = new_event(), keyed_event(str(uuid.uuid4()))
        for events in ([alone], [keyed], together := numbered(2)):
            elsewhere.put(events)
        assert ids(acme.consume().events) == (ids([alone, keyed, *together]) if enabled else [])


def test_a_put_says_in_which_status_the_event_is_stored(off: Consumer) -> None:
    alone, keyed, together = new_event(), keyed_event(str(uuid.uuid4())), numbered(2)
    stored = [each for events in ([alone], [keyed], together) for each in off.put(events)]
    assert [each.status for each in stored] == [Status.DELIVERED] * 4
    switch(off, enabled=True)
    assert off.put([new_event()])[0].status is Status.UNDELIVERED


def test_a_repeat_gets_the_first_answer_whatever_default_is_since(acme: Consumer) -> None:
    crm = acme.at("crm")
    crm.make()
    while_on, while_off = (keyed_event(str(uuid.uuid4())) for _ in range(2))
    acme.put([while_on])
    switch(acme, enabled=False)
    acme.put([while_off])
    first = [
        PutResult(while_on.event_id, None, NOW, True, Status.UNDELIVERED),
        PutResult(while_off.event_id, None, NOW, True, Status.DELIVERED),
    ]

    for enabled in (False, True):
        switch(acme, enabled=enabled)
        assert [*acme.put([while_on], NOW + 5), *acme.put([while_off], NOW + 5)] == first
        assert acme.put([while_on, while_off], NOW + 5) == first
        with pytest.raises(IdempotencyConflict):
            acme.put([while_off._replace(fingerprint=b"other")], NOW + 5)
    assert ids(acme.consume().events) == [while_on.event_id]
    assert [*acme.put([while_on], NOW + 5), *acme.put([while_off], NOW + 5)] == first
    assert ids(crm.consume().events) == [while_on.event_id, while_off.event_id]


def test_an_event_that_came_while_default_was_off_can_be_replayed(off: Consumer) -> None:
    (event, other, last) = off.send_some(3)
    undelivered = kept(event)._replace(status=Status.UNDELIVERED)

    assert off.replay(event.event_id) == undelivered
    assert off.replay(event.event_id) == undelivered
    assert off.peek().events == [undelivered]
    (leased,) = off.lease().events
    with pytest.raises(EventLeased):
        off.replay(event.event_id)
    assert off.acknowledge(receipts([leased]), NOW + 5) == [True]
    assert off.get(event.event_id) == kept(event)._replace(deliveries=1, delivered_at_ms=NOW + 5)

    assert off.replay_all(Selection(status=Status.DEAD)).count == 0
    assert off.replay_all(most=2).more is True
    assert off.replay_all().count == 1
    claimed = off.consume(at=NOW + 7).events
    assert [(each.event_id, each.deliveries, each.delivered_at_ms) for each in claimed] == [
        (event.event_id, 2, NOW + 7),
        (other.event_id, 1, NOW + 7),
        (last.event_id, 1, NOW + 7),
    ]


def test_what_was_undelivered_when_default_was_turned_off_can_still_be_polled(acme: Consumer) -> None:
    before = acme.send_some(3)
    (leased,) = acme.lease(1).events
    switch(acme, enabled=False)
    acme.send_some(2)

    assert acme.undelivered() == UndeliveredSummary(2, NOW)
    assert ids(acme.consume(1).events) == [before[1].event_id]
    assert acme.release(receipts([leased])) == [True]
    assert ids(acme.consume().events) == [before[0].event_id, before[2].event_id]


def test_events_are_undelivered_again_once_default_is_turned_on(off: Consumer) -> None:
    off.send_some(2)
    switch(off, enabled=True)
    events = off.send_some(2)
    assert ids(off.consume().events) == ids(events)


def test_what_came_while_default_was_off_counts_as_received_only(off: Consumer) -> None:
    off.at("crm").make()
    off.send_some(3)
    off.put([keyed_event(str(uuid.uuid4()), payload=b'{"n":4}')])

    assert off.totals() == Counts(received=4, bytes=28)
    assert off.undelivered() == UndeliveredSummary(0, None)
    assert off.at("crm").undelivered() == UndeliveredSummary(4, NOW)


def test_a_replay_and_a_delivery_of_such_an_event_count(off: Consumer) -> None:
    event, *_ = off.send_some(3)
    off.replay(event.event_id)
    assert off.undelivered() == UndeliveredSummary(1, NOW)
    off.consume()
    assert off.totals() == Counts(received=3, delivered=1, replayed=1, bytes=21)
    assert off.undelivered() == UndeliveredSummary(0, None)


def test_a_recount_counts_no_delivery_that_never_was(off: Consumer) -> None:
    off.at("crm").make()
    event, *_ = off.send_some(3)
    off.replay(event.event_id)
    off.consume()
    before = off.totals()

    assert off.recount() == 0
    assert (off.totals(), off.undelivered()) == (before, UndeliveredSummary(0, None))
    assert off.at("crm").undelivered() == UndeliveredSummary(3, NOW)


def test_such_events_are_erased_and_expire_like_others(off: Consumer) -> None:
    crm = off.at("crm")
    crm.make()
    erased, expired = off.send_some(2)

    assert off.erase(erased.event_id) is True
    assert (off.get(erased.event_id), crm.get(erased.event_id)) == (None, None)
    later = LATER * 1000
    assert (off.get(expired.event_id, later), off.history(at=later)) == (None, [])
    off.harness.store.events.purge(later, 100)
    assert off.undelivered(later) == UndeliveredSummary(0, None)
    assert crm.undelivered(later) == UndeliveredSummary(0, None)


def test_another_tenant_is_not_concerned(off: Consumer) -> None:
    globex = off.of("globex")
    events = globex.send_some(2)
    assert ids(globex.consume().events) == ids(events)
