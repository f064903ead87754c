"""Tenants with shards: every event is found, in order, after each change of the number of shards."""

import uuid

import pytest

from inbox.domain.events import DEFAULT_INBOX, NewEvent, Order, PageSize, Selection, Status
from inbox.domain.inboxes import Inbox
from inbox.errors import IdempotencyConflict, NotFound
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.layout import TENANTS, tenant_key
from inbox.store.dynamodb.shards import NOTICE_MS
from tests.contract.samples import ids as ids_of
from tests.contract.samples import receipts
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import ANY_SIZE, EVERYTHING, LATER, NOW, audit_entry, claim, keyed_event, new_event
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness

SOON = NOW + NOTICE_MS


@pytest.fixture
def sharded(store: DynamoDBStore, tenant: str) -> DynamoDBStore:
    store.tenants.create(named(tenant), [audit_entry()])
    store.tenants.shard(tenant, 4, NOW)
    return store


def partitions(harness: DynamoDBHarness, store: DynamoDBStore, tenant: str, events: list[NewEvent]) -> set[str]:
    shards = store.events._shards.get(tenant)
    keys = [key for event in events for key in shards.keys(event.event_id, DEFAULT_INBOX)]
    return {item["pk"]["S"] for item in harness.connection.get_many("Events", keys)}


def test_new_events_are_spread_and_delivered_in_order(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str
) -> None:
    events = [new_event() for _ in range(60)]
    sharded.events.put(tenant, events, SOON, LATER)

    assert partitions(harness, sharded, tenant, events) == {f"{tenant}##{shard}" for shard in range(4)}
    ids = ids_of(events)
    for order, expected in ((Order.OLDEST, ids), (Order.NEWEST, ids[::-1])):
        page = sharded.events.peek(tenant, DEFAULT_INBOX, order, PageSize(25, ANY_SIZE), SOON)
        assert (ids_of(page.events), page.more) == (expected[:25], True)
    assert [claim(sharded, tenant, 25, now_ms=SOON) for _ in range(4)] == [ids[:25], ids[25:50], ids[50:], []]


def test_sharding_takes_effect_once_every_process_knows(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str
) -> None:
    events = [new_event() for _ in range(20)]
    sharded.events.put(tenant, events, SOON - 1, LATER)

    assert partitions(harness, sharded, tenant, events) == {tenant}


@pytest.mark.parametrize("later_count", [1, 3, 8])
def test_another_number_of_shards_hides_no_event(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str, later_count: int
) -> None:
    before, between, after = ([new_event() for _ in range(10)] for _ in range(3))
    sharded.events.put(tenant, before, NOW, LATER)
    sharded.events.put(tenant, between, SOON, LATER)
    sharded.tenants.shard(tenant, later_count, SOON)
    # Every process reads the new number before it takes effect.
    store = DynamoDBStore(harness.connection, MAX_DELIVERIES)
    store.events.put(tenant, after, SOON + NOTICE_MS, LATER)

    ids = [event.event_id for event in (*before, *between, *after)]
    assert all(store.events.get(tenant, DEFAULT_INBOX, event_id, SOON) for event_id in ids)
    assert claim(store, tenant, now_ms=SOON) == ids


def test_idempotency_key_is_found_after_a_change_of_shards(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str
) -> None:
    events = [keyed_event() for _ in range(10)]
    sharded.events.put(tenant, events, SOON, LATER)
    sharded.tenants.shard(tenant, 7, SOON)
    store = DynamoDBStore(harness.connection, MAX_DELIVERIES)

    assert partitions(harness, store, tenant, events) == {tenant}
    for event in events:
        assert store.events.put(tenant, [event], SOON + NOTICE_MS, LATER)[0].repeated
    with pytest.raises(IdempotencyConflict):
        store.events.put(tenant, [NewEvent(events[0].event_id, None, b"{}", b"another")], SOON + NOTICE_MS, LATER)
    assert len(claim(store, tenant, now_ms=SOON)) == 10


def test_tenants_with_similar_names_stay_apart(sharded: DynamoDBStore, tenant: str) -> None:
    sharded.events.put(f"{tenant}-0", [new_event()], SOON, LATER)
    assert claim(sharded, tenant, now_ms=SOON) == []


def test_unknown_tenant_cannot_be_sharded(store: DynamoDBStore) -> None:
    with pytest.raises(NotFound):
        store.tenants.shard("nobody", 4, NOW)


INBOX = "3"


def ids_of_shard(number: int, count: int, of: int = 4) -> list[str]:
    """Returns event IDs of that shard."""
    return [str(uuid.UUID(int=each * of + number)) for each in range(2**100, 2**100 + count)]


def test_inbox_named_by_digits_does_not_read_a_shard_of_default(
    uncached_store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = uncached_store
    store.tenants.create(named(tenant), [audit_entry()])
    store.tenants.shard(tenant, 4, NOW)
    store.events.put(tenant, [NewEvent(each, None, b"{}") for each in ids_of_shard(3, 30)], SOON, LATER)
    store.inboxes.save(tenant, Inbox(INBOX, None, NOW))
    # A poll that reads more than one page of the index fails.
    monkeypatch.setattr("inbox.store.dynamodb.status_index.MAX_QUERIES", 1)

    assert store.events.claim(tenant, INBOX, PageSize(1, ANY_SIZE), SOON).events == []


@pytest.fixture
def sharded_before(uncached_store: DynamoDBStore, tenant: str) -> DynamoDBStore:
    """A tenant that was sharded by a release that named shard 3 like the inbox `3`."""
    store = uncached_store
    store.tenants.create(named(tenant), [audit_entry()])
    old = {"L": [{"M": {"count": {"N": "4"}, "since": {"N": str(NOW)}}}]}
    store._connection.call(
        "update_item",
        TableName=store._connection.table(TENANTS),
        Key=tenant_key(tenant),
        UpdateExpression="SET shards = :old",
        ExpressionAttributeValues={":old": old},
    )
    store.inboxes.save(tenant, Inbox(INBOX, None, NOW))
    return store


def test_tenant_sharded_by_an_earlier_release_keeps_its_partitions(
    harness: DynamoDBHarness, sharded_before: DynamoDBStore, tenant: str
) -> None:
    """Processes of that release read and write them during the upgrade."""
    events = [NewEvent(each, None, b"{}") for number in range(4) for each in ids_of_shard(number, 5)]
    sharded_before.events.put(tenant, events, NOW, LATER)

    assert partitions(harness, sharded_before, tenant, events) == {f"{tenant}#{shard}" for shard in range(4)}
    for inbox in (DEFAULT_INBOX, INBOX):
        assert ids_of(sharded_before.events.claim(tenant, inbox, EVERYTHING, NOW).events) == ids_of(events)


@pytest.fixture
def resharded(
    harness: DynamoDBHarness, sharded_before: DynamoDBStore, tenant: str
) -> tuple[DynamoDBStore, list[NewEvent]]:
    """Events in the partitions of the earlier release, in the first one, and in those of this release."""
    old, new = ([*(new_event() for _ in range(11)), keyed_event()] for _ in range(2))
    sharded_before.events.put(tenant, old, NOW, LATER)
    sharded_before.counters.flush()
    sharded_before.tenants.shard(tenant, 4, NOW)
    store = DynamoDBStore(harness.connection, MAX_DELIVERIES, 0)
    store.events.put(tenant, new, SOON, LATER)
    assert partitions(harness, store, tenant, new[:-1]) <= {f"{tenant}##{shard}" for shard in range(4)}
    return store, old + new


@pytest.mark.parametrize("inbox", [DEFAULT_INBOX, INBOX])
def test_events_of_both_releases_are_found(
    resharded: tuple[DynamoDBStore, list[NewEvent]], tenant: str, inbox: str
) -> None:
    store, events = resharded
    ids = ids_of(events)
    assert all(store.events.get(tenant, inbox, each, SOON) for each in ids)
    assert ids_of(store.events.peek(tenant, inbox, Order.OLDEST, EVERYTHING, SOON).events) == ids
    for selection in (Selection(inbox=inbox), Selection(inbox=inbox, event_type="order.created")):
        listing = store.events.page(tenant, selection, Order.NEWEST, EVERYTHING, None, SOON)
        assert ids_of(listing.events) == ids[::-1]
    assert store.counters.undelivered(tenant, inbox, SOON).count == len(ids)


@pytest.mark.parametrize("inbox", [DEFAULT_INBOX, INBOX])
def test_events_of_both_releases_live_on(
    resharded: tuple[DynamoDBStore, list[NewEvent]], tenant: str, inbox: str
) -> None:
    store, events = resharded
    ids = ids_of(events)
    leased = store.events.claim(tenant, inbox, EVERYTHING, SOON, SOON + 60_000).events
    assert ids_of(leased) == ids
    assert store.events.acknowledge(tenant, receipts(leased), SOON) == [True] * len(ids)
    assert store.events.replay_all(tenant, Selection(inbox=inbox), 500, SOON).count == len(ids)
    assert ids_of(store.events.claim(tenant, inbox, EVERYTHING, SOON, attempt="attempt-1").events) == ids
    delivered = store.events.page(
        tenant, Selection(inbox=inbox, status=Status.DELIVERED), Order.OLDEST, EVERYTHING, None, SOON
    )
    assert ids_of(delivered.events) == ids


def test_events_of_both_releases_are_counted_and_deleted(
    resharded: tuple[DynamoDBStore, list[NewEvent]], tenant: str
) -> None:
    store, events = resharded
    assert store.counters.recount(tenant, 0, SOON) == 0
    store.inboxes.close(tenant, INBOX)
    assert store.inboxes.delete_copies(tenant, INBOX, 500) == len(events)
    assert store.counters.undelivered(tenant, DEFAULT_INBOX, SOON).count == len(events)
    assert all(store.events.erase(tenant, event.event_id, SOON) for event in events)
    assert claim(store, tenant, now_ms=SOON) == []


def test_process_of_an_earlier_release_writes_where_this_release_reads(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    """An earlier release reads only `count`. With 1 it writes to the first partition."""
    store.tenants.create(named(tenant), [audit_entry()])
    store.tenants.shard(tenant, 4, NOW)

    item = harness.connection.get(TENANTS, tenant_key(tenant)) or {}
    assert [each["M"]["count"] for each in item["shards"]["L"]] == [{"N": "1"}]
    assert store.events._shards.get(tenant).index_partitions(DEFAULT_INBOX)[0] == tenant
