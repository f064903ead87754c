"""INBOX_LIST_DELIVERED=off: `status-index` does not list delivered events, which saves a write unit per event."""

import pytest

from inbox.domain.events import DEFAULT_INBOX, Order, Selection, Status
from inbox.domain.inboxes import Inbox
from inbox.errors import InvalidRequest
from inbox.store.dynamodb import DynamoDBStore, writes
from inbox.store.dynamodb.layout import EVENTS, SCHEMA_KEY, TENANTS, event_key
from tests.contract.samples import ids
from tests.contract.samples import receipts as receipts_of
from tests.dynamodb.conftest import (
    EVERYTHING,
    LATER_S,
    LEASE_UNTIL,
    NOW,
    claim,
    claim_with_attempt,
    new_event,
    poll,
    put_events,
    warm_up,
)
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness
from tests.engines.wire import Wire


@pytest.fixture
def store(harness: DynamoDBHarness) -> DynamoDBStore:
    return DynamoDBStore(harness.connection, MAX_DELIVERIES, 0, list_delivered=False)


def list_ids(store: DynamoDBStore, tenant: str, selection: Selection) -> list[str]:
    return ids(store.events.page(tenant, selection, Order.OLDEST, EVERYTHING, None, NOW).events)


def test_delivered_event_costs_one_write_unit_less(harness: DynamoDBHarness, tenant: str) -> None:
    store = DynamoDBStore(harness.connection, MAX_DELIVERIES, list_delivered=False)
    warm_up(store, tenant)
    put_events(store, tenant, 20)
    wire = Wire(harness.connection)
    wire.measures_statements = True
    try:
        assert len(claim(store, tenant, 10)) == 10
        assert wire.units["BatchExecuteStatement"] == 20
        leased = poll(store, tenant, 10, lease_until_ms=LEASE_UNTIL)
        assert all(store.events.acknowledge(tenant, receipts_of(leased), NOW))
        assert wire.units["BatchExecuteStatement"] == 20 + 20 + 20
    finally:
        wire.remove()


def test_item_keeps_its_delivered_key_and_leaves_the_index(store: DynamoDBStore, tenant: str) -> None:
    (event_id,) = put_events(store, tenant, 1)
    claim(store, tenant)
    item = store._connection.get(EVENTS, event_key(tenant, event_id))
    assert item is not None
    assert item["gsi1sk"]["S"].startswith("delivered#")
    assert "gsi1pk" not in item


def test_delivered_events_are_found_by_id_and_by_type(store: DynamoDBStore, tenant: str) -> None:
    delivered = put_events(store, tenant, 3)
    assert claim(store, tenant) == delivered
    other = new_event(event_type="invoice")
    store.events.put(tenant, [other], NOW, LATER_S)

    of_type = Selection(event_type="order.created")
    assert all(store.events.get(tenant, DEFAULT_INBOX, each, NOW) for each in delivered)
    assert list_ids(store, tenant, of_type) == delivered
    assert list_ids(store, tenant, Selection(event_type="order.created", status=Status.DELIVERED)) == delivered
    assert list_ids(store, tenant, Selection(event_type="order.created", status=Status.UNDELIVERED)) == []
    assert list_ids(store, tenant, Selection()) == [other.event_id]


def test_list_of_delivered_events_that_the_index_does_not_have_is_refused(store: DynamoDBStore, tenant: str) -> None:
    selection = Selection(status=Status.DELIVERED)
    with pytest.raises(InvalidRequest, match="INBOX_LIST_DELIVERED"):
        list_ids(store, tenant, selection)
    with pytest.raises(InvalidRequest, match="INBOX_LIST_DELIVERED"):
        store.events.replay_all(tenant, selection, 9, NOW)


def test_replayed_events_are_claimable_again_in_order(store: DynamoDBStore, tenant: str) -> None:
    events = put_events(store, tenant, 3)
    assert claim(store, tenant) == events
    store.events.replay(tenant, DEFAULT_INBOX, events[2], NOW)
    assert store.events.replay_all(tenant, Selection(event_type="order.created"), 9, NOW).count == 2
    assert claim_with_attempt(store, tenant, 9) == events
    assert store.counters.undelivered(tenant, DEFAULT_INBOX, NOW).count == 0


def test_dead_events_are_listed_and_replayed(store: DynamoDBStore, tenant: str) -> None:
    events = put_events(store, tenant, 1)
    for _ in range(MAX_DELIVERIES):
        leased = poll(store, tenant, lease_until_ms=LEASE_UNTIL)
        assert store.events.release(tenant, receipts_of(leased), NOW, NOW, failed=True) == [True]
    assert list_ids(store, tenant, Selection(status=Status.DEAD)) == events
    assert store.events.replay_all(tenant, Selection(status=Status.DEAD), 9, NOW).count == 1
    assert claim(store, tenant) == events


def test_copies_of_named_inboxes_stay_listed(store: DynamoDBStore, tenant: str) -> None:
    store.inboxes.save(tenant, Inbox("crm", None, NOW))
    events = put_events(store, tenant, 2)
    assert claim(store, tenant, inbox="crm") == events
    assert list_ids(store, tenant, Selection("crm", Status.DELIVERED)) == events
    assert store.events.replay(tenant, "crm", events[0], NOW) is not None
    assert claim(store, tenant, inbox="crm") == events[:1]
    assert store.events.erase(tenant, events[0], NOW)
    assert claim(store, tenant) == events[1:]


def test_store_that_lists_delivered_events_lists_again_what_it_delivers(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    events = put_events(store, tenant, 2)
    assert claim(store, tenant) == events
    listing = DynamoDBStore(harness.connection, MAX_DELIVERIES)
    assert listing.events.replay(tenant, DEFAULT_INBOX, events[0], NOW) is not None
    assert claim(listing, tenant, now_ms=NOW + 10_000) == events[:1]
    assert list_ids(listing, tenant, Selection(status=Status.DELIVERED)) == events[:1]


def test_events_stay_listed_while_earlier_releases_may_replay_them(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    version = harness.connection.get(TENANTS, SCHEMA_KEY)
    assert version is not None
    table = harness.connection.table(TENANTS)
    harness.connection.call("delete_item", TableName=table, Key=SCHEMA_KEY)
    try:
        events = put_events(store, tenant, 1)
        leased = poll(store, tenant, lease_until_ms=LEASE_UNTIL)
        item = store._connection.get(EVENTS, event_key(tenant, events[0]))
        assert item is not None
        assert item["gsi1sk"]["S"].startswith("leased#")
        assert store.events.acknowledge(tenant, receipts_of(leased), NOW) == [True]
    finally:
        harness.connection.call("put_item", TableName=table, Item=version)
    listing = DynamoDBStore(harness.connection, MAX_DELIVERIES)
    assert list_ids(listing, tenant, Selection(status=Status.DELIVERED)) == events


def test_replay_lists_an_event_where_polls_look_if_its_partition_is_not_read_any_more(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    events = put_events(store, tenant, 2)
    assert claim(store, tenant) == events
    for event_id in events:
        update = writes.update(
            harness.connection.table(EVENTS),
            event_key(tenant, event_id),
            {"unlisted_pk": {"S": f"{tenant}##7.1"}},
        )
        harness.connection.write(update)
    assert store.events.replay(tenant, DEFAULT_INBOX, events[0], NOW) is not None
    assert store.events.replay_all(tenant, Selection(event_type="order.created"), 9, NOW).count == 1
    assert claim(store, tenant) == events


def test_deleted_inbox_leaves_no_copies(store: DynamoDBStore, tenant: str) -> None:
    store.inboxes.save(tenant, Inbox("crm", None, NOW))
    events = put_events(store, tenant, 2)
    assert claim(store, tenant, inbox="crm") == events
    assert store.inboxes.close(tenant, "crm")
    assert store.inboxes.delete_copies(tenant, "crm", 9) == 2
    assert store.events.get(tenant, "crm", events[0], NOW) is None
