"""Disabling the inbox `default`."""

import uuid

import pytest

from inbox.domain.events import Event, NewEvent, Order, PutResult, Selection, Status
from inbox.domain.inboxes import MAX_INBOXES, Inbox
from inbox.domain.stats import Counts, UndeliveredSummary
from inbox.errors import EventLeased, IdempotencyConflict
from inbox.store.interface import Store
from tests.contract.consumer import Consumer
from tests.contract.samples import LATER_S, NOW, ids, keyed_event, new_event, numbered, receipts
from tests.engines.harnesses import Harness


@pytest.fixture
def disabled(acme: Consumer) -> Consumer:
    """A consumer of the inbox `default`, which is disabled."""
    set_default_enabled(acme, False)
    return acme


def set_default_enabled(consumer: Consumer, enabled: bool) -> None:
    consumer.harness.store.inboxes.set_default_enabled(consumer.tenant_id, enabled)


def stored_while_disabled(new: NewEvent, at: int = NOW) -> Event:
    """Returns the event as a disabled `default` stores it."""
    return Event(new.event_id, new.event_type, at, Status.DELIVERED, 0, None, new.payload)


def test_default_is_enabled_until_it_is_disabled(harness: Harness) -> None:
    inboxes = harness.store.inboxes
    assert inboxes.is_default_enabled("acme") is True
    for enabled in (False, False, True, True, False):
        inboxes.set_default_enabled("acme", enabled)
        assert inboxes.is_default_enabled("acme") is enabled
        assert harness.another().inboxes.is_default_enabled("acme") is enabled
    harness.reopen()
    assert harness.store.inboxes.is_default_enabled("acme") is False
    assert harness.store.inboxes.is_default_enabled("globex") is True


def test_default_is_not_a_named_inbox(store: Store) -> None:
    store.inboxes.set_default_enabled("acme", False)
    assert store.inboxes.all("acme") == []
    assert store.inboxes.get("acme", "default") is None
    names = [f"inbox-{number:02}" for number in range(MAX_INBOXES)]
    for name in names:
        assert store.inboxes.save("acme", Inbox(name, None, NOW)) is True
    assert [inbox.name for inbox in store.inboxes.all("acme")] == names
    assert store.inboxes.is_default_enabled("acme") is False


def test_default_stays_disabled_when_the_last_named_inbox_is_deleted(store: Store) -> None:
    store.inboxes.set_default_enabled("acme", False)
    store.inboxes.save("acme", Inbox("crm", None, NOW))
    store.inboxes.close("acme", "crm")
    store.inboxes.delete_copies("acme", "crm", 9)
    assert store.inboxes.is_default_enabled("acme") is False


def test_disabled_default_has_no_claimable_events(disabled: Consumer) -> None:
    orders, everything = disabled.in_inbox("orders"), disabled.in_inbox("everything")
    orders.create_inbox("order.*")
    everything.create_inbox()
    events = disabled.send(new_event(event_type="order.created"), new_event(event_type="invoice"), new_event())
    disabled.send(event := new_event())

    for page in (disabled.peek(), disabled.consume(), disabled.lease(), disabled.consume(attempt="a")):
        assert (page.events, page.more) == ([], False)
    assert ids(everything.peek(order=Order.NEWEST).events) == ids([event, *events[::-1]])
    assert ids(everything.consume().events) == ids([*events, event])
    assert ids(orders.lease().events) == ids([events[0], events[2], event])


def test_disabled_default_still_lists_every_event(disabled: Consumer) -> None:
    events = disabled.send_some(3)
    disabled.send(other := new_event(event_type="other"))

    assert [disabled.get(event.event_id) for event in events] == [stored_while_disabled(event) for event in events]
    assert disabled.history(limit=2) == [stored_while_disabled(event) for event in (*events, other)]
    assert disabled.history(Selection(status=Status.DELIVERED), Order.NEWEST) == [
        stored_while_disabled(each) for each in (other, *events[::-1])
    ]
    assert disabled.history(Selection(event_type="other")) == [stored_while_disabled(other)]
    assert disabled.history(Selection(event_type="other", status=Status.DELIVERED)) == [stored_while_disabled(other)]
    assert disabled.history(Selection(status=Status.UNDELIVERED)) == []


def test_enabling_or_disabling_default_applies_at_once_in_every_process(acme: Consumer) -> None:
    other_process = acme.in_another_process()
    for enabled in (False, True) * 3:
        # The other process caches the previous state.
        other_process.send_some(1)
        acme.consume()
        set_default_enabled(acme, enabled)
        single_event, keyed, batch = new_event(), keyed_event(str(uuid.uuid4())), numbered(2)
        for events in ([single_event], [keyed], batch):
            other_process.put(events)
        assert ids(acme.consume().events) == (ids([single_event, keyed, *batch]) if enabled else [])


def test_put_returns_the_status_in_default(disabled: Consumer) -> None:
    single_event, keyed, batch = new_event(), keyed_event(str(uuid.uuid4())), numbered(2)
    stored = [each for events in ([single_event], [keyed], batch) for each in disabled.put(events)]
    assert [each.status for each in stored] == [Status.DELIVERED] * 4
    set_default_enabled(disabled, True)
    assert disabled.put([new_event()])[0].status is Status.UNDELIVERED


def test_repeated_event_returns_its_first_status(acme: Consumer) -> None:
    crm = acme.in_inbox("crm")
    crm.create_inbox()
    sent_while_enabled, sent_while_disabled = (keyed_event(str(uuid.uuid4())) for _ in range(2))
    acme.put([sent_while_enabled])
    set_default_enabled(acme, False)
    acme.put([sent_while_disabled])
    first = [
        PutResult(sent_while_enabled.event_id, None, NOW, True, Status.UNDELIVERED),
        PutResult(sent_while_disabled.event_id, None, NOW, True, Status.DELIVERED),
    ]

    for enabled in (False, True):
        set_default_enabled(acme, enabled)
        assert [*acme.put([sent_while_enabled], NOW + 5), *acme.put([sent_while_disabled], NOW + 5)] == first
        assert acme.put([sent_while_enabled, sent_while_disabled], NOW + 5) == first
        with pytest.raises(IdempotencyConflict):
            acme.put([sent_while_disabled._replace(fingerprint=b"other")], NOW + 5)
    assert ids(acme.consume().events) == [sent_while_enabled.event_id]
    assert [*acme.put([sent_while_enabled], NOW + 5), *acme.put([sent_while_disabled], NOW + 5)] == first
    assert ids(crm.consume().events) == [sent_while_enabled.event_id, sent_while_disabled.event_id]


def test_event_of_disabled_default_can_be_replayed(disabled: Consumer) -> None:
    (event, other, last) = disabled.send_some(3)
    undelivered = stored_while_disabled(event)._replace(status=Status.UNDELIVERED)

    assert disabled.replay(event.event_id) == undelivered
    assert disabled.replay(event.event_id) == undelivered
    assert disabled.peek().events == [undelivered]
    (leased,) = disabled.lease().events
    with pytest.raises(EventLeased):
        disabled.replay(event.event_id)
    assert disabled.acknowledge(receipts([leased]), NOW + 5) == [True]
    assert disabled.get(event.event_id) == stored_while_disabled(event)._replace(deliveries=1, delivered_at_ms=NOW + 5)

    assert disabled.replay_all(Selection(status=Status.DEAD)).count == 0
    assert disabled.replay_all(limit=2).more is True
    assert disabled.replay_all().count == 1
    claimed = disabled.consume(at=NOW + 7).events
    assert [(each.event_id, each.deliveries, each.delivered_at_ms) for each in claimed] == [
        (event.event_id, 2, NOW + 7),
        (other.event_id, 1, NOW + 7),
        (last.event_id, 1, NOW + 7),
    ]


def test_undelivered_events_stay_claimable_when_default_is_disabled(acme: Consumer) -> None:
    before = acme.send_some(3)
    (leased,) = acme.lease(1).events
    set_default_enabled(acme, False)
    acme.send_some(2)

    assert acme.undelivered() == UndeliveredSummary(2, NOW)
    assert ids(acme.consume(1).events) == [before[1].event_id]
    assert acme.release(receipts([leased])) == [True]
    assert ids(acme.consume().events) == [before[0].event_id, before[2].event_id]


def test_event_of_disabled_default_counts_as_received_only(disabled: Consumer) -> None:
    disabled.in_inbox("crm").create_inbox()
    disabled.send_some(3)
    disabled.put([keyed_event(str(uuid.uuid4()), payload=b'{"n":4}')])

    assert disabled.totals() == Counts(received=4, bytes=28)
    assert disabled.undelivered() == UndeliveredSummary(0, None)
    assert disabled.in_inbox("crm").undelivered() == UndeliveredSummary(4, NOW)


def test_recount_of_disabled_default_counts_no_delivery(disabled: Consumer) -> None:
    disabled.in_inbox("crm").create_inbox()
    event, *_ = disabled.send_some(3)
    disabled.replay(event.event_id)
    assert disabled.undelivered() == UndeliveredSummary(1, NOW)
    disabled.consume()
    before = disabled.totals()

    assert before == Counts(received=3, delivered=1, replayed=1, bytes=21)
    assert disabled.recount() == 0
    assert (disabled.totals(), disabled.undelivered()) == (before, UndeliveredSummary(0, None))
    assert disabled.in_inbox("crm").undelivered() == UndeliveredSummary(3, NOW)


def test_events_of_disabled_default_can_be_erased_and_expire(disabled: Consumer) -> None:
    crm = disabled.in_inbox("crm")
    crm.create_inbox()
    erased, expired = disabled.send_some(2)

    assert disabled.erase(erased.event_id) is True
    assert (disabled.get(erased.event_id), crm.get(erased.event_id)) == (None, None)
    later = LATER_S * 1000
    assert (disabled.get(expired.event_id, later), disabled.history(at=later)) == (None, [])
    disabled.harness.store.events.purge(later, 100)
    assert disabled.undelivered(later) == UndeliveredSummary(0, None)
    assert crm.undelivered(later) == UndeliveredSummary(0, None)
