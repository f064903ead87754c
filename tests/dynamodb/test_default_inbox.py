"""An inbox `default` that is off: where the setting is stored, and what it costs to obey it."""

import pytest

from inbox.domain.events import PageSize, Status
from inbox.domain.inboxes import Inbox
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.layout import NAMED_INBOXES_PREFIX, TENANTS, tenant_key, text
from tests.dynamodb.conftest import ALL_ATTEMPTS, ANY_SIZE, LATER, NOW, claim, fresh, keyed
from tests.engines.harnesses import MAX_DELIVERIES
from tests.engines.wire import Fault, Wire


@pytest.mark.parametrize("enabled", [False, True])
def test_a_process_that_has_cached_the_setting_obeys_once_the_switch_has_returned(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str, enabled: bool
) -> None:
    store.inboxes.set_default_enabled(tenant, not enabled)
    # It is read within the second that a process may remember it.
    assert other_store.inboxes.is_default_enabled(tenant) is not enabled
    store.inboxes.set_default_enabled(tenant, enabled)
    (stored,) = other_store.events.put(tenant, [fresh()], NOW, LATER)
    assert stored.status is (Status.UNDELIVERED if enabled else Status.DELIVERED)


def test_obeying_costs_no_read_of_its_own(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    store.inboxes.set_default_enabled(tenant, False)
    fresh_process = DynamoDBStore(store._connection, MAX_DELIVERIES)
    wire.reset()
    fresh_process.events.put(tenant, [fresh()], NOW, LATER)
    # For the shards, the inboxes and the event.
    assert dict(wire.calls) == {"GetItem": 1, "Query": 1, "PutItem": 1}


def test_a_process_of_an_earlier_release_sees_no_named_inbox(store: DynamoDBStore, tenant: str) -> None:
    store.inboxes.set_default_enabled(tenant, False)
    seen = store._connection.query_items(
        TableName=store._connection.table(TENANTS),
        KeyConditionExpression="PK = :tenant AND begins_with(SK, :inboxes)",
        ExpressionAttributeValues={":tenant": tenant_key(tenant)["PK"], ":inboxes": text(NAMED_INBOXES_PREFIX)},
    )
    assert list(seen) == []


@pytest.mark.usefixtures("no_pauses")
def test_a_repeat_writes_copies_that_were_not_written_as_undelivered(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    other_store.inboxes.save(tenant, Inbox("crm", None, NOW))
    other_store.inboxes.set_default_enabled(tenant, False)
    event = keyed()
    wire.fail("PutItem", Fault.TIMEOUT_BEFORE, ALL_ATTEMPTS, after=1)
    with pytest.raises(StoreUnavailable):
        store.events.put(tenant, [event], NOW, LATER)

    (repeated,) = other_store.events.put(tenant, [event], NOW, LATER)
    assert (repeated.replayed, repeated.status) == (True, Status.DELIVERED)
    assert claim(other_store, tenant) == []
    (copy,) = other_store.events.claim(tenant, "crm", PageSize(9, ANY_SIZE), NOW).events
    assert copy.event_id == event.event_id
