"""Named inboxes and a disabled `default`: an accepted event has all of its copies, even if a process is killed."""

from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, Status
from inbox.domain.inboxes import MAX_INBOXES, Inbox
from inbox.errors import StoreUnavailable, TooManyInboxes
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.layout import NAMED_INBOXES_PREFIX, TENANTS, event_key, tenant_key, text
from tests.contract.samples import ids
from tests.dynamodb.conftest import BOTOCORE_ATTEMPTS, LATER_S, NOW, claim, keyed_event, new_event, put_events
from tests.engines.harnesses import MAX_DELIVERIES
from tests.engines.wire import Fault, Wire


@pytest.fixture
def inboxes(uncached_store: DynamoDBStore, tenant: str) -> list[str]:
    names = ["audit", "shipping"]
    for name in names:
        uncached_store.inboxes.save(tenant, Inbox(name, None, NOW))
    return names


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("written_before", [1, 2])
def test_repeated_event_with_an_idempotency_key_receives_its_missing_copies(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, inboxes: list[str], written_before: int
) -> None:
    event = keyed_event()
    wire.fail("PutItem", Fault.TIMEOUT_BEFORE, 2 * BOTOCORE_ATTEMPTS, after=written_before)
    with pytest.raises(StoreUnavailable):
        store.events.put(tenant, [event], NOW, LATER_S)
    assert claim(other_store, tenant) == [event.event_id]

    for expected in ([event.event_id], []):
        assert other_store.events.put(tenant, [event], NOW, LATER_S)[0].repeated
        assert [claim(other_store, tenant, inbox=name) for name in inboxes] == [expected, expected]


@pytest.mark.usefixtures("inboxes")
def test_event_with_an_idempotency_key_has_no_pending_copies_once_they_are_written(
    store: DynamoDBStore, tenant: str
) -> None:
    event = keyed_event()
    store.events.put(tenant, [event], NOW, LATER_S)

    item = store._connection.get("Events", event_key(tenant, event.event_id))
    assert item is not None
    assert "pending_copies" not in item


@pytest.mark.usefixtures("no_pauses")
def test_event_that_is_erased_before_its_copies_are_written_has_none(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, inboxes: list[str]
) -> None:
    event = keyed_event()
    wire.fail(
        "PutItem",
        Fault.TIMEOUT_BEFORE,
        1,
        after=1,
        then=lambda _body: other_store.events.erase(tenant, event.event_id, NOW),
    )
    store.events.put(tenant, [event], NOW, LATER_S)

    assert wire.fault_count == 1
    assert [claim(store, tenant, inbox=name) for name in (DEFAULT_INBOX, *inboxes)] == [[], [], []]


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("fault", [Fault.ALL_UNPROCESSED, Fault.HALF_UNPROCESSED, Fault.TIMEOUT_AFTER, Fault.THROTTLED])
def test_accepted_event_has_all_of_its_copies(
    store: DynamoDBStore, wire: Wire, tenant: str, inboxes: list[str], fault: Fault
) -> None:
    wire.fail("BatchWriteItem", fault, 1)
    events = put_events(store, tenant, 1)

    assert wire.fault_count == 1
    assert [claim(store, tenant, inbox=name) for name in (DEFAULT_INBOX, *inboxes)] == [events] * 3


@pytest.mark.usefixtures("no_pauses", "inboxes")
# The store repeats unprocessed writes, but not one that timed out, because it may still be executed later.
@pytest.mark.parametrize(("fault", "times"), [(Fault.ALL_UNPROCESSED, 20), (Fault.TIMEOUT_BEFORE, 1)])
def test_event_without_its_copies_is_not_accepted(
    store: DynamoDBStore, wire: Wire, tenant: str, fault: Fault, times: int
) -> None:
    wire.fail("BatchWriteItem", fault, times)
    with pytest.raises(StoreUnavailable):
        put_events(store, tenant, 1)


def test_event_can_have_more_copies_than_fit_into_a_batch(
    uncached_store: DynamoDBStore, store: DynamoDBStore, tenant: str
) -> None:
    names = [f"inbox-{number}" for number in range(30)]
    for name in names:
        uncached_store.inboxes.save(tenant, Inbox(name, None, NOW))
    single, batch = new_event(), [new_event(), keyed_event()]
    store.events.put(tenant, [single], NOW, LATER_S)
    store.events.put(tenant, batch, NOW, LATER_S)

    assert [claim(store, tenant, inbox=name) for name in names] == [ids([single, *batch])] * 30
    assert store.events.erase(tenant, single.event_id, NOW)
    assert all(store.events.get(tenant, name, single.event_id, NOW) is None for name in names)


def test_deleting_an_inbox_does_not_delete_a_new_inbox_with_its_name(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipping = Inbox("shipping", None, NOW)
    store.inboxes.save(tenant, shipping)
    store.inboxes.close(tenant, "shipping")
    delete = store.inboxes._writer.delete_many

    def create_another(keys: list[Any]) -> None:
        delete(keys)
        monkeypatch.undo()
        assert other_store.inboxes.delete_copies(tenant, "shipping", 9) == 0
        assert other_store.inboxes.save(tenant, shipping)

    monkeypatch.setattr(store.inboxes._writer, "delete_many", create_another)
    assert store.inboxes.delete_copies(tenant, "shipping", 9) == 0
    assert store.inboxes.all(tenant) == [shipping]


def test_closed_inbox_does_not_count_towards_the_maximum(uncached_store: DynamoDBStore, tenant: str) -> None:
    inboxes = uncached_store.inboxes
    for number in range(MAX_INBOXES):
        inboxes.save(tenant, Inbox(f"inbox-{number}", None, NOW))
    with pytest.raises(TooManyInboxes):
        inboxes.save(tenant, Inbox("another", None, NOW))

    assert inboxes.close(tenant, "inbox-0")
    assert inboxes.save(tenant, Inbox("another", None, NOW))


def test_disabled_default_inbox_costs_no_further_read(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    store.inboxes.set_default_enabled(tenant, False)
    new_process = DynamoDBStore(store._connection, MAX_DELIVERIES)
    wire.reset()
    put_events(new_process, tenant, 1)
    # The shards, the inboxes and the event take one call each.
    assert dict(wire.calls) == {"GetItem": 1, "Query": 1, "PutItem": 1}


def test_earlier_release_sees_no_named_inbox_if_default_is_disabled(store: DynamoDBStore, tenant: str) -> None:
    store.inboxes.set_default_enabled(tenant, False)
    found = store._connection.query_items(
        TENANTS,
        KeyConditionExpression="PK = :tenant AND begins_with(SK, :inboxes)",
        ExpressionAttributeValues={":tenant": tenant_key(tenant)["PK"], ":inboxes": text(NAMED_INBOXES_PREFIX)},
    )
    assert list(found) == []


@pytest.mark.usefixtures("no_pauses")
def test_missing_copy_is_undelivered_although_default_is_disabled(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    other_store.inboxes.save(tenant, Inbox("crm", None, NOW))
    other_store.inboxes.set_default_enabled(tenant, False)
    event = keyed_event()
    wire.fail("PutItem", Fault.TIMEOUT_BEFORE, BOTOCORE_ATTEMPTS, after=1)
    with pytest.raises(StoreUnavailable):
        store.events.put(tenant, [event], NOW, LATER_S)

    (repeated,) = other_store.events.put(tenant, [event], NOW, LATER_S)
    assert (repeated.repeated, repeated.status) == (True, Status.DELIVERED)
    assert claim(other_store, tenant) == []
    assert claim(other_store, tenant, inbox="crm") == [event.event_id]
