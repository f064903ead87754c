"""Tenants with shards: every event is found, in order, after each change of the number of shards."""

import uuid

import pytest

from inbox.domain.events import DEFAULT_INBOX, NewEvent, Order, PageSize, Selection, Status, keyed_event_id
from inbox.domain.inboxes import Inbox
from inbox.errors import IdempotencyConflict, NotFound
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.layout import EVENTS, TENANTS, tenant_key
from inbox.store.dynamodb.shards import NOTICE_MS, TenantShards
from tests.contract.samples import ids as ids_of
from tests.contract.samples import receipts
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import EVERYTHING, LATER_S, NOW, PAGE_BYTES, audit_entry, claim, keyed_event, new_event
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness
from tests.engines.wire import Fault, Wire

EFFECTIVE_MS = NOW + NOTICE_MS
AFTER_CHANGE_MS = EFFECTIVE_MS + NOTICE_MS
"""Nothing is written in the way of before any more."""


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


def keyed_partition(tenant: str, event: NewEvent) -> str:
    return f"{tenant}##k{uuid.UUID(event.event_id).int % 16}"


def test_events_with_idempotency_keys_are_spread_by_their_ids(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str
) -> None:
    events = [keyed_event()._replace(event_id=keyed_event_id("acme", f"order-{number}")) for number in range(200)]
    sharded.events.put(tenant, events, AFTER_CHANGE_MS, LATER_S)

    assert find_partitions(harness, sharded, tenant, events) == {f"{tenant}##k{number}" for number in range(16)}
    assert claim(sharded, tenant, now_ms=AFTER_CHANGE_MS) == ids_of(events)


def test_idempotency_key_is_found_after_a_change_of_shards(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str
) -> None:
    events = [keyed_event() for _ in range(10)]
    sharded.events.put(tenant, events, EFFECTIVE_MS, LATER_S)
    sharded.tenants.shard(tenant, 7, EFFECTIVE_MS)
    store = DynamoDBStore(harness.connection, MAX_DELIVERIES)

    assert find_partitions(harness, store, tenant, events) == {keyed_partition(tenant, event) for event in events}
    for event in events:
        assert store.events.put(tenant, [event], EFFECTIVE_MS + NOTICE_MS, LATER_S)[0].repeated
    with pytest.raises(IdempotencyConflict):
        store.events.put(
            tenant, [NewEvent(events[0].event_id, None, b"{}", b"another")], EFFECTIVE_MS + NOTICE_MS, LATER_S
        )
    assert len(claim(store, tenant, now_ms=EFFECTIVE_MS)) == 10


around_the_change = pytest.mark.parametrize("now_ms", [EFFECTIVE_MS, AFTER_CHANGE_MS])


@around_the_change
def test_idempotency_key_used_before_the_tenant_was_sharded_is_found(
    sharded: DynamoDBStore, tenant: str, now_ms: int
) -> None:
    earlier, new = [keyed_event() for _ in range(3)], keyed_event()
    conflicting = earlier[0]._replace(fingerprint=b"another")
    sharded.events.put(tenant, earlier, NOW, LATER_S)

    assert [sharded.events.put(tenant, [event], now_ms, LATER_S)[0].repeated for event in earlier] == [True] * 3
    results = sharded.events.put(tenant, [*earlier, new], now_ms, LATER_S)
    assert [result.repeated for result in results] == [True, True, True, False]
    for batch in ([conflicting], [keyed_event(), conflicting]):
        with pytest.raises(IdempotencyConflict):
            sharded.events.put(tenant, batch, now_ms, LATER_S)
    assert claim(sharded, tenant, now_ms=now_ms) == ids_of([*earlier, new])


@around_the_change
def test_expired_event_of_before_the_tenant_was_sharded_does_not_block_its_key(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str, now_ms: int
) -> None:
    event = keyed_event()
    sharded.events.put(tenant, [event], NOW, NOW // 1000 + 30)

    assert not sharded.events.put(tenant, [event], now_ms, LATER_S)[0].repeated
    assert find_partitions(harness, sharded, tenant, [event]) == {tenant, keyed_partition(tenant, event)}
    assert claim(sharded, tenant, now_ms=now_ms) == [event.event_id]
    replayed = sharded.events.replay(tenant, DEFAULT_INBOX, event.event_id, now_ms)
    assert replayed is not None
    assert replayed.status is Status.UNDELIVERED


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("later_ms", [EFFECTIVE_MS, EFFECTIVE_MS + NOTICE_MS - 1])
def test_delayed_put_of_a_process_whose_clock_is_behind_finds_the_event_in_its_new_partition(
    sharded: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, later_ms: int
) -> None:
    event = keyed_event()

    def store_in_new_partition(_body: object) -> None:
        assert not other_store.events.put(tenant, [event], later_ms, LATER_S)[0].repeated

    wire.fail("TransactWriteItems", Fault.TIMEOUT_BEFORE, 1, then=store_in_new_partition)
    assert sharded.events.put(tenant, [event], EFFECTIVE_MS - 1, LATER_S)[0].repeated
    assert wire.fault_count == 1
    assert claim(sharded, tenant, now_ms=AFTER_CHANGE_MS) == [event.event_id]


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("fingerprint", [b"first", b"another"])
def test_put_finds_the_event_that_another_process_stores_in_the_first_partition_meanwhile(
    sharded: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, fingerprint: bytes
) -> None:
    event = keyed_event()
    # The other process has read the tenant before it was sharded.
    other_store.events._shards._cache[tenant,] = TenantShards(tenant)

    def store_in_first_partition(_body: object) -> None:
        earlier = event._replace(fingerprint=fingerprint)
        assert not other_store.events.put(tenant, [earlier], EFFECTIVE_MS, LATER_S)[0].repeated

    wire.fail("TransactWriteItems", Fault.TIMEOUT_BEFORE, 1, then=store_in_first_partition)
    if fingerprint == event.fingerprint:
        assert sharded.events.put(tenant, [event], EFFECTIVE_MS, LATER_S)[0].repeated
    else:
        with pytest.raises(IdempotencyConflict):
            sharded.events.put(tenant, [event], EFFECTIVE_MS, LATER_S)
    assert wire.fault_count == 1
    assert claim(sharded, tenant, now_ms=AFTER_CHANGE_MS) == [event.event_id]


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.SERVER_ERROR_AFTER])
def test_put_around_the_change_whose_response_is_lost_is_not_a_repeat(
    sharded: DynamoDBStore, wire: Wire, tenant: str, fault: Fault
) -> None:
    event = keyed_event()
    wire.fail("TransactWriteItems", fault, 1)

    assert not sharded.events.put(tenant, [event], EFFECTIVE_MS, LATER_S)[0].repeated
    assert wire.fault_count == 1
    assert sharded.events.put(tenant, [event], EFFECTIVE_MS, LATER_S)[0].repeated


def test_transactions_are_only_used_around_the_change(sharded: DynamoDBStore, wire: Wire, tenant: str) -> None:
    for now_ms, transactions in ((NOW - 1, 0), (NOW, 1), (AFTER_CHANGE_MS - 1, 1), (AFTER_CHANGE_MS, 0)):
        wire.reset()
        sharded.events.put(tenant, [keyed_event()], now_ms, LATER_S)
        assert wire.calls["TransactWriteItems"] == transactions


def test_copies_are_in_the_partition_of_their_event(
    harness: DynamoDBHarness, uncached_store: DynamoDBStore, tenant: str
) -> None:
    store = uncached_store
    store.tenants.create(named(tenant), [audit_entry()])
    store.tenants.shard(tenant, 4, NOW)
    store.inboxes.save(tenant, Inbox("crm", None, NOW))
    event = keyed_event()
    store.events.put(tenant, [event], AFTER_CHANGE_MS, LATER_S)

    (copy,) = harness.connection.get_many(EVENTS, store.events._shards.get(tenant).keys(event.event_id, "crm"))
    shard = uuid.UUID(event.event_id).int % 4
    assert (copy["pk"]["S"], copy["gsi1pk"]["S"]) == (keyed_partition(tenant, event), f"{tenant}#crm##{shard}")
    assert ids_of(store.events.claim(tenant, "crm", EVERYTHING, AFTER_CHANGE_MS).events) == [event.event_id]


def test_tables_that_are_not_upgraded_keep_events_with_keys_in_the_first_partition(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Release 0.1.0 would not find them anywhere else."""
    monkeypatch.setattr(store.schema, "get", lambda: 1)
    store.tenants.create(named(tenant), [audit_entry()])
    for shards in (4, 8):
        store.tenants.shard(tenant, shards, NOW)
    keyed, unkeyed = [[make() for _ in range(40)] for make in (keyed_event, new_event)]
    store.events.put(tenant, keyed + unkeyed, EFFECTIVE_MS, LATER_S)

    assert find_partitions(harness, store, tenant, keyed) == {tenant}
    assert find_partitions(harness, store, tenant, unkeyed) == {f"{tenant}##{shard}" for shard in range(8)}


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


def test_same_number_of_shards_again_changes_nothing(sharded: DynamoDBStore, tenant: str) -> None:
    sharded.tenants.shard(tenant, 4, EFFECTIVE_MS)
    assert [each.since_ms for each in sharded.events._shards.get(tenant).shardings] == [0, EFFECTIVE_MS]
