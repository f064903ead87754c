"""A heavy tenant spread over several partitions: everything is found, in order, whenever the number changes."""

import pytest

from inbox.errors import IdempotencyConflict, NotFound
from inbox.events import DEFAULT_INBOX, NewEvent, Order, PageSize
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.shards import NOTICE_MS
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import ANY_SIZE, LATER, NOW, claim, entry, fresh, keyed
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness

SOON = NOW + NOTICE_MS


@pytest.fixture
def sharded(store: DynamoDBStore, tenant: str) -> DynamoDBStore:
    store.tenants.create(named(tenant), [entry()])
    store.tenants.shard(tenant, 4, NOW)
    return store


def partitions(harness: DynamoDBHarness, store: DynamoDBStore, tenant: str, events: list[NewEvent]) -> set[str]:
    keys = [key for event in events for key in _keys(store, tenant, event)]
    return {item["pk"]["S"] for item in harness.connection.get_many("Events", keys)}


def _keys(store: DynamoDBStore, tenant: str, event: NewEvent) -> list[dict[str, dict[str, str]]]:
    places = store.events._shards.of(tenant).may_hold(event.event_id)
    return [{"pk": {"S": place}, "sk": {"S": event.event_id}} for place in places]


def test_new_events_spread_out_and_come_back_in_order(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str
) -> None:
    events = [fresh() for _ in range(60)]
    sharded.events.put(tenant, events, SOON, LATER)

    assert partitions(harness, sharded, tenant, events) == {f"{tenant}#{shard}" for shard in range(4)}
    ids = [event.event_id for event in events]
    for order, expected in ((Order.OLDEST, ids), (Order.NEWEST, ids[::-1])):
        page = sharded.events.peek(tenant, DEFAULT_INBOX, order, PageSize(25, ANY_SIZE), SOON)
        assert ([event.event_id for event in page.events], page.more) == (expected[:25], True)
    assert [claim(sharded, tenant, 25, SOON) for _ in range(4)] == [ids[:25], ids[25:50], ids[50:], []]


def test_they_do_so_only_once_every_process_knows(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str
) -> None:
    events = [fresh() for _ in range(20)]
    sharded.events.put(tenant, events, SOON - 1, LATER)

    assert partitions(harness, sharded, tenant, events) == {tenant}


@pytest.mark.parametrize("later_count", [1, 3, 8])
def test_another_number_hides_nothing(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str, later_count: int
) -> None:
    before, between, after = ([fresh() for _ in range(10)] for _ in range(3))
    sharded.events.put(tenant, before, NOW, LATER)
    sharded.events.put(tenant, between, SOON, LATER)
    sharded.tenants.shard(tenant, later_count, SOON)
    # As every process does within the notice.
    store = DynamoDBStore(harness.connection, MAX_DELIVERIES)
    store.events.put(tenant, after, SOON + NOTICE_MS, LATER)

    ids = [event.event_id for event in (*before, *between, *after)]
    assert all(store.events.get(tenant, DEFAULT_INBOX, event_id, SOON) for event_id in ids)
    assert claim(store, tenant, 500, SOON) == ids


def test_a_key_stands_for_the_same_event_when_the_number_changes(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str
) -> None:
    events = [keyed() for _ in range(10)]
    sharded.events.put(tenant, events, SOON, LATER)
    sharded.tenants.shard(tenant, 7, SOON)
    store = DynamoDBStore(harness.connection, MAX_DELIVERIES)

    assert partitions(harness, store, tenant, events) == {tenant}
    for event in events:
        assert store.events.put(tenant, [event], SOON + NOTICE_MS, LATER)[0].replayed
    with pytest.raises(IdempotencyConflict):
        store.events.put(tenant, [NewEvent(events[0].event_id, None, b"{}", b"another")], SOON + NOTICE_MS, LATER)
    assert len(claim(store, tenant, 500, SOON)) == 10


def test_tenants_with_similar_names_stay_apart(sharded: DynamoDBStore, tenant: str) -> None:
    sharded.events.put(f"{tenant}-0", [fresh()], SOON, LATER)
    assert claim(sharded, tenant, 500, SOON) == []


def test_only_a_tenant_can_be_spread(store: DynamoDBStore) -> None:
    with pytest.raises(NotFound):
        store.tenants.shard("nobody", 4, NOW)
