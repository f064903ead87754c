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
from tests.dynamodb.conftest import EVERYTHING, LATER_S, NOW, PAGE_BYTES, audit_entry, claim, keyed_event, new_event
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness

EFFECTIVE_MS = NOW + NOTICE_MS


@pytest.fixture
def sharded(store: DynamoDBStore, tenant: str) -> DynamoDBStore:
    store.tenants.create(named(tenant), [audit_entry()])
    store.tenants.shard(tenant, 4, NOW)
    return store


def find_partitions(harness: DynamoDBHarness, store: DynamoDBStore, tenant: str, events: list[NewEvent]) -> set[str]:
    shards = store.events._shards.get(tenant)
    keys = [key for event in events for key in shards.keys(event.event_id, DEFAULT_INBOX)]
    return {item["pk"]["S"] for item in harness.connection.get_many("Events", keys)}


def test_new_events_are_spread_and_delivered_in_order(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str
) -> None:
    events = [new_event() for _ in range(60)]
    sharded.events.put(tenant, events, EFFECTIVE_MS, LATER_S)

    assert find_partitions(harness, sharded, tenant, events) == {f"{tenant}##{shard}" for shard in range(4)}
    ids = ids_of(events)
    for order, expected in ((Order.OLDEST, ids), (Order.NEWEST, ids[::-1])):
        page = sharded.events.peek(tenant, DEFAULT_INBOX, order, PageSize(25, PAGE_BYTES), EFFECTIVE_MS)
        assert (ids_of(page.events), page.more) == (expected[:25], True)
    assert [claim(sharded, tenant, 25, now_ms=EFFECTIVE_MS) for _ in range(4)] == [ids[:25], ids[25:50], ids[50:], []]


def test_sharding_takes_effect_once_every_process_has_read_it(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str
) -> None:
    events = [new_event() for _ in range(20)]
    sharded.events.put(tenant, events, EFFECTIVE_MS - 1, LATER_S)

    assert find_partitions(harness, sharded, tenant, events) == {tenant}


@pytest.mark.parametrize("later_count", [1, 3, 8])
def test_another_number_of_shards_hides_no_event(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str, later_count: int
) -> None:
    before, between, after = ([new_event() for _ in range(10)] for _ in range(3))
    sharded.events.put(tenant, before, NOW, LATER_S)
    sharded.events.put(tenant, between, EFFECTIVE_MS, LATER_S)
    sharded.tenants.shard(tenant, later_count, EFFECTIVE_MS)
    # Every process reads the new number before it takes effect.
    store = DynamoDBStore(harness.connection, MAX_DELIVERIES)
    store.events.put(tenant, after, EFFECTIVE_MS + NOTICE_MS, LATER_S)

    ids = [event.event_id for event in (*before, *between, *after)]
    assert all(store.events.get(tenant, DEFAULT_INBOX, event_id, EFFECTIVE_MS) for event_id in ids)
    assert claim(store, tenant, now_ms=EFFECTIVE_MS) == ids


def test_idempotency_key_is_found_after_a_change_of_shards(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str
) -> None:
    events = [keyed_event() for _ in range(10)]
    sharded.events.put(tenant, events, EFFECTIVE_MS, LATER_S)
    sharded.tenants.shard(tenant, 7, EFFECTIVE_MS)
    store = DynamoDBStore(harness.connection, MAX_DELIVERIES)

    assert find_partitions(harness, store, tenant, events) == {tenant}
    for event in events:
        assert store.events.put(tenant, [event], EFFECTIVE_MS + NOTICE_MS, LATER_S)[0].repeated
    with pytest.raises(IdempotencyConflict):
        store.events.put(
            tenant, [NewEvent(events[0].event_id, None, b"{}", b"another")], EFFECTIVE_MS + NOTICE_MS, LATER_S
        )
    assert len(claim(store, tenant, now_ms=EFFECTIVE_MS)) == 10


def test_poll_of_a_sharded_tenant_returns_no_event_of_a_similar_tenant_id(sharded: DynamoDBStore, tenant: str) -> None:
    sharded.events.put(f"{tenant}-0", [new_event()], EFFECTIVE_MS, LATER_S)
    assert claim(sharded, tenant, now_ms=EFFECTIVE_MS) == []


def test_unknown_tenant_cannot_be_sharded(store: DynamoDBStore) -> None:
    with pytest.raises(NotFound):
        store.tenants.shard("nobody", 4, NOW)


NUMERIC_INBOX = "3"


def ids_of_shard(number: int, count: int, shards: int = 4) -> list[str]:
    """Returns `count` event IDs that belong to shard `number` of `shards`."""
    return [str(uuid.UUID(int=each * shards + number)) for each in range(2**100, 2**100 + count)]


def test_inbox_named_by_digits_does_not_read_a_shard_of_default(
    uncached_store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = uncached_store
    store.tenants.create(named(tenant), [audit_entry()])
    store.tenants.shard(tenant, 4, NOW)
    store.events.put(tenant, [NewEvent(each, None, b"{}") for each in ids_of_shard(3, 30)], EFFECTIVE_MS, LATER_S)
    store.inboxes.save(tenant, Inbox(NUMERIC_INBOX, None, NOW))
    # A poll that reads more than one page of the index fails.
    monkeypatch.setattr("inbox.store.dynamodb.status_index.MAX_QUERIES", 1)

    assert store.events.claim(tenant, NUMERIC_INBOX, PageSize(1, PAGE_BYTES), EFFECTIVE_MS).events == []


@pytest.fixture
def sharded_by_earlier_release(uncached_store: DynamoDBStore, tenant: str) -> DynamoDBStore:
    """A store in which an earlier release has sharded the tenant. That release named shard 3 like the inbox `3`."""
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
    store.inboxes.save(tenant, Inbox(NUMERIC_INBOX, None, NOW))
    return store


def test_tenant_sharded_by_an_earlier_release_keeps_its_partitions(
    harness: DynamoDBHarness, sharded_by_earlier_release: DynamoDBStore, tenant: str
) -> None:
    """Processes of that release read and write these partitions during the upgrade."""
    events = [NewEvent(each, None, b"{}") for number in range(4) for each in ids_of_shard(number, 5)]
    sharded_by_earlier_release.events.put(tenant, events, NOW, LATER_S)

    assert find_partitions(harness, sharded_by_earlier_release, tenant, events) == {
        f"{tenant}#{shard}" for shard in range(4)
    }
    for inbox in (DEFAULT_INBOX, NUMERIC_INBOX):
        assert ids_of(sharded_by_earlier_release.events.claim(tenant, inbox, EVERYTHING, NOW).events) == ids_of(events)


@pytest.fixture
def resharded(
    harness: DynamoDBHarness, sharded_by_earlier_release: DynamoDBStore, tenant: str
) -> tuple[DynamoDBStore, list[NewEvent]]:
    """A store, and events in the partitions of the earlier release, in the first one, and in those of this release."""
    old, new = ([*(new_event() for _ in range(11)), keyed_event()] for _ in range(2))
    sharded_by_earlier_release.events.put(tenant, old, NOW, LATER_S)
    sharded_by_earlier_release.counters.flush()
    sharded_by_earlier_release.tenants.shard(tenant, 4, NOW)
    store = DynamoDBStore(harness.connection, MAX_DELIVERIES, 0)
    store.events.put(tenant, new, EFFECTIVE_MS, LATER_S)
    assert find_partitions(harness, store, tenant, new[:-1]) <= {f"{tenant}##{shard}" for shard in range(4)}
    return store, old + new


@pytest.mark.parametrize("inbox", [DEFAULT_INBOX, NUMERIC_INBOX])
def test_events_of_both_releases_are_found(
    resharded: tuple[DynamoDBStore, list[NewEvent]], tenant: str, inbox: str
) -> None:
    store, events = resharded
    ids = ids_of(events)
    assert all(store.events.get(tenant, inbox, each, EFFECTIVE_MS) for each in ids)
    assert ids_of(store.events.peek(tenant, inbox, Order.OLDEST, EVERYTHING, EFFECTIVE_MS).events) == ids
    for selection in (Selection(inbox=inbox), Selection(inbox=inbox, event_type="order.created")):
        listing = store.events.page(tenant, selection, Order.NEWEST, EVERYTHING, None, EFFECTIVE_MS)
        assert ids_of(listing.events) == ids[::-1]
    assert store.counters.undelivered(tenant, inbox, EFFECTIVE_MS).count == len(ids)


@pytest.mark.parametrize("inbox", [DEFAULT_INBOX, NUMERIC_INBOX])
def test_events_of_both_releases_can_be_acknowledged_and_replayed(
    resharded: tuple[DynamoDBStore, list[NewEvent]], tenant: str, inbox: str
) -> None:
    store, events = resharded
    ids = ids_of(events)
    leased = store.events.claim(tenant, inbox, EVERYTHING, EFFECTIVE_MS, EFFECTIVE_MS + 60_000).events
    assert ids_of(leased) == ids
    assert store.events.acknowledge(tenant, receipts(leased), EFFECTIVE_MS) == [True] * len(ids)
    assert store.events.replay_all(tenant, Selection(inbox=inbox), 500, EFFECTIVE_MS).count == len(ids)
    assert ids_of(store.events.claim(tenant, inbox, EVERYTHING, EFFECTIVE_MS, attempt="attempt-1").events) == ids
    delivered = store.events.page(
        tenant, Selection(inbox=inbox, status=Status.DELIVERED), Order.OLDEST, EVERYTHING, None, EFFECTIVE_MS
    )
    assert ids_of(delivered.events) == ids


def test_events_of_both_releases_are_counted_and_deleted(
    resharded: tuple[DynamoDBStore, list[NewEvent]], tenant: str
) -> None:
    store, events = resharded
    assert store.counters.recount(tenant, 0, EFFECTIVE_MS) == 0
    store.inboxes.close(tenant, NUMERIC_INBOX)
    assert store.inboxes.delete_copies(tenant, NUMERIC_INBOX, 500) == len(events)
    assert store.counters.undelivered(tenant, DEFAULT_INBOX, EFFECTIVE_MS).count == len(events)
    assert all(store.events.erase(tenant, event.event_id, EFFECTIVE_MS) for event in events)
    assert claim(store, tenant, now_ms=EFFECTIVE_MS) == []


def test_process_of_an_earlier_release_writes_where_this_release_reads(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    """An earlier release reads only `count`. With 1 it writes to the first partition."""
    store.tenants.create(named(tenant), [audit_entry()])
    store.tenants.shard(tenant, 4, NOW)

    item = harness.connection.get(TENANTS, tenant_key(tenant)) or {}
    assert [each["M"]["count"] for each in item["shards"]["L"]] == [{"N": "1"}]
    assert store.events._shards.get(tenant).index_partitions(DEFAULT_INBOX)[0] == tenant
