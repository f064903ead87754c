"""Copies for named inboxes: a 201 never goes without them, wherever a process ends."""

import uuid
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, NewEvent, PageSize
from inbox.domain.inboxes import MAX_INBOXES, Inbox
from inbox.errors import StoreUnavailable, TooManyInboxes
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.layout import event_key
from inbox.store.dynamodb.shards import NOTICE_MS
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import ALL_ATTEMPTS, ANY_SIZE, LATER, NOW, claim, entry, fresh, keyed
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness
from tests.engines.wire import Fault, Wire


def take(store: DynamoDBStore, tenant: str, inbox: str, now_ms: int = NOW) -> list[str]:
    return [event.event_id for event in store.events.claim(tenant, inbox, PageSize(500, ANY_SIZE), now_ms).events]


@pytest.fixture
def inboxes(harness: DynamoDBHarness, tenant: str) -> list[str]:
    quick = DynamoDBStore(harness.connection, MAX_DELIVERIES, 0)
    names = ["audit", "shipping"]
    for name in names:
        quick.inboxes.save(tenant, Inbox(name, None, NOW))
    return names


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("written_before", [1, 2])
def test_a_keyed_event_whose_copies_were_not_written_gets_them_when_it_is_sent_again(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, inboxes: list[str], written_before: int
) -> None:
    event = keyed()
    wire.fail("PutItem", Fault.TIMEOUT_BEFORE, 2 * ALL_ATTEMPTS, after=written_before)
    with pytest.raises(StoreUnavailable):
        store.events.put(tenant, [event], NOW, LATER)
    assert claim(other_store, tenant) == [event.event_id]

    assert other_store.events.put(tenant, [event], NOW, LATER)[0].replayed
    assert [take(other_store, tenant, name) for name in inboxes] == [[event.event_id], [event.event_id]]
    assert other_store.events.put(tenant, [event], NOW, LATER)[0].replayed
    assert [take(other_store, tenant, name) for name in inboxes] == [[], []]


def test_a_keyed_event_waits_for_no_copies_once_they_are_written(
    store: DynamoDBStore, tenant: str, inboxes: list[str]
) -> None:
    assert inboxes
    event = keyed()
    store.events.put(tenant, [event], NOW, LATER)

    item = store._connection.get("Events", event_key(tenant, event.event_id))
    assert item is not None
    assert "pending_copies" not in item


@pytest.mark.usefixtures("no_pauses")
def test_an_event_that_is_erased_before_its_copies_are_written_has_none(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, inboxes: list[str]
) -> None:
    event = keyed()
    wire.fail(
        "PutItem",
        Fault.TIMEOUT_BEFORE,
        1,
        after=1,
        then=lambda _body: other_store.events.erase(tenant, event.event_id, NOW),
    )
    store.events.put(tenant, [event], NOW, LATER)

    assert wire.fired == 1
    assert [take(store, tenant, name) for name in (DEFAULT_INBOX, *inboxes)] == [[], [], []]


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("fault", [Fault.NONE, Fault.HALF, Fault.TIMEOUT_AFTER, Fault.THROTTLED])
def test_an_event_that_is_accepted_has_all_of_its_copies(
    store: DynamoDBStore, wire: Wire, tenant: str, inboxes: list[str], fault: Fault
) -> None:
    event = fresh()
    wire.fail("BatchWriteItem", fault, 1)

    assert store.events.put(tenant, [event], NOW, LATER)
    assert wire.fired == 1
    assert [take(store, tenant, name) for name in (DEFAULT_INBOX, *inboxes)] == [[event.event_id]] * 3


@pytest.mark.usefixtures("no_pauses", "inboxes")
# Left over time and again, or given up once: what is not there may still be on its way.
@pytest.mark.parametrize(("fault", "times"), [(Fault.NONE, 20), (Fault.TIMEOUT_BEFORE, 1)])
def test_an_event_without_its_copies_is_not_accepted(
    store: DynamoDBStore, wire: Wire, tenant: str, fault: Fault, times: int
) -> None:
    wire.fail("BatchWriteItem", fault, times)
    with pytest.raises(StoreUnavailable):
        store.events.put(tenant, [fresh()], NOW, LATER)


def test_an_event_may_have_more_copies_than_a_batch_takes(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    quick = DynamoDBStore(harness.connection, MAX_DELIVERIES, 0)
    names = [f"inbox-{number}" for number in range(30)]
    for name in names:
        quick.inboxes.save(tenant, Inbox(name, None, NOW))
    single, batch = fresh(), [fresh(), keyed()]
    store.events.put(tenant, [single], NOW, LATER)
    store.events.put(tenant, batch, NOW, LATER)

    expected = [event.event_id for event in (single, *batch)]
    assert [take(store, tenant, name) for name in names] == [expected] * 30
    assert store.events.erase(tenant, single.event_id, NOW)
    assert all(store.events.get(tenant, name, single.event_id, NOW) is None for name in names)


def test_an_inbox_named_like_a_shard_keeps_to_itself(
    harness: DynamoDBHarness, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    store = DynamoDBStore(harness.connection, MAX_DELIVERIES, 0)
    store.tenants.create(named(tenant), [entry()])
    store.tenants.shard(tenant, 4, NOW - NOTICE_MS)
    for name in ("3", "0"):
        store.inboxes.save(tenant, Inbox(name, None, NOW))
    events = [NewEvent(str(uuid.UUID(int=number, version=4)), None, b"{}") for number in range(8)]
    store.events.put(tenant, events, NOW, LATER)
    ids = [event.event_id for event in events]

    assert take(store, tenant, "3") == ids
    store.inboxes.close(tenant, "0")
    assert store.inboxes.delete_copies(tenant, "0", 100) == 8
    assert take(store, tenant, DEFAULT_INBOX) == ids
    assert take(store, tenant, "0") == []


def test_clearing_an_inbox_leaves_one_alone_that_was_made_under_its_name_meanwhile(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipping = Inbox("shipping", None, NOW)
    store.inboxes.save(tenant, shipping)
    store.inboxes.close(tenant, "shipping")
    delete = store.inboxes._writer.delete

    def meanwhile(keys: list[Any]) -> None:
        delete(keys)
        monkeypatch.undo()
        assert other_store.inboxes.delete_copies(tenant, "shipping", 9) == 0
        assert other_store.inboxes.save(tenant, shipping)

    monkeypatch.setattr(store.inboxes._writer, "delete", meanwhile)
    assert store.inboxes.delete_copies(tenant, "shipping", 9) == 0
    assert store.inboxes.all(tenant) == [shipping]


def test_a_closed_inbox_leaves_room_for_another(harness: DynamoDBHarness, tenant: str) -> None:
    quick = DynamoDBStore(harness.connection, MAX_DELIVERIES, 0)
    for number in range(MAX_INBOXES):
        quick.inboxes.save(tenant, Inbox(f"inbox-{number}", None, NOW))
    with pytest.raises(TooManyInboxes):
        quick.inboxes.save(tenant, Inbox("another", None, NOW))

    assert quick.inboxes.close(tenant, "inbox-0")
    assert quick.inboxes.save(tenant, Inbox("another", None, NOW))
