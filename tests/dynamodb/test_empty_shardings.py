"""Earlier shardings are read as long as an event is left in their partitions, and no longer."""

from collections.abc import Callable

import pytest

from inbox.domain.events import DEFAULT_INBOX, NewEvent, Order, Selection
from inbox.domain.inboxes import Inbox
from inbox.domain.stats import Span
from inbox.store.dynamodb import DynamoDBStore, layout
from inbox.store.dynamodb.layout import EVENTS
from inbox.store.dynamodb.shards import CHECK_INTERVAL_MS, NOTICE_MS
from tests.contract.samples import ids
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import EVERYTHING, NOW, audit_entry, claim, keyed_event, new_event
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness
from tests.engines.wire import Fault, Wire

RETENTION_MS = 30 * Span.DAY.ms
FIRST_MS = NOW + NOTICE_MS
"""The tenant has 4 shards from here on,"""
SECOND_MS = FIRST_MS + NOTICE_MS
"""and 8 from here on."""
CHECKED_MS = SECOND_MS + RETENTION_MS
EXPIRES_AT_S = (CHECKED_MS + RETENTION_MS) // 1000

Put = Callable[[list[NewEvent], int], list[str]]


@pytest.fixture
def sharded(uncached_store: DynamoDBStore, tenant: str) -> DynamoDBStore:
    """A store with a tenant that had one partition, then 4 shards, then 8."""
    uncached_store.tenants.create(named(tenant), [audit_entry()])
    uncached_store.tenants.shard(tenant, 4, NOW)
    uncached_store.tenants.shard(tenant, 8, FIRST_MS)
    return uncached_store


@pytest.fixture
def put(sharded: DynamoDBStore, tenant: str) -> Put:
    """Stores events and returns their IDs."""

    def put(events: list[NewEvent], now_ms: int) -> list[str]:
        sharded.events.put(tenant, events, now_ms, EXPIRES_AT_S)
        return [event.event_id for event in events]

    return put


def check_twice(store: DynamoDBStore, tenant: str, now_ms: int = CHECKED_MS) -> None:
    """Runs the background task twice. A process checks the tenants that it serves."""
    store.events._shards.get(tenant)
    for check_ms in (now_ms, now_ms + CHECK_INTERVAL_MS):
        store.events.purge(check_ms, 100)
    store.events._shards._cache.clear()


def counts_of_shards(store: DynamoDBStore, tenant: str) -> list[int]:
    store.events._shards._cache.clear()
    return [sharding.count for sharding in store.events._shards.get(tenant).shardings]


def test_empty_poll_reads_only_the_partitions_of_the_latest_sharding(
    store: DynamoDBStore, sharded: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    def queries_of_empty_poll() -> tuple[int, float]:
        store.events._shards._cache.clear()
        store.events._shards.get(tenant)
        wire.reset()
        assert claim(store, tenant, now_ms=CHECKED_MS) == []
        return wire.calls["Query"], wire.units["Query"]

    assert queries_of_empty_poll() == (1 + 4 + 8, 6.5)
    check_twice(sharded, tenant)
    assert queries_of_empty_poll() == (8, 4.0)
    assert store.events._shards.get(tenant).index_partitions(DEFAULT_INBOX) == [
        f"{tenant}##1.{shard}" for shard in range(8)
    ]


def test_events_are_found_after_earlier_shardings_were_removed(sharded: DynamoDBStore, put: Put, tenant: str) -> None:
    keyed = keyed_event()
    stored = put([new_event(), keyed, new_event()], SECOND_MS)
    check_twice(sharded, tenant)
    stored += put([new_event(), keyed_event()], CHECKED_MS)

    assert counts_of_shards(sharded, tenant) == [8]
    assert sharded.events.put(tenant, [keyed], CHECKED_MS, EXPIRES_AT_S)[0].repeated
    assert all(sharded.events.get(tenant, DEFAULT_INBOX, each, CHECKED_MS) for each in stored)
    assert claim(sharded, tenant, now_ms=CHECKED_MS) == stored
    assert sharded.events.erase(tenant, stored[0], CHECKED_MS)


def deliver(store: DynamoDBStore, tenant: str, event_id: str) -> None:
    assert claim(store, tenant, now_ms=SECOND_MS) == [event_id]


def delete_original(store: DynamoDBStore, tenant: str, event_id: str) -> None:
    """Deletes the event in `default`, which leaves the copy."""
    keys = store.events._shards.get(tenant).keys(event_id, DEFAULT_INBOX)
    assert len(store.events._writer.delete_returning(keys)) == 1


def do_nothing(_store: DynamoDBStore, _tenant: str, _event_id: str) -> None:
    pass


@pytest.mark.parametrize("change", [do_nothing, deliver, delete_original])
@pytest.mark.parametrize("make_event", [new_event, keyed_event])
@pytest.mark.parametrize(("stored_ms", "left"), [(NOW, [1, 8]), (FIRST_MS, [4, 8])])
def test_sharding_is_kept_while_an_event_is_left(
    sharded: DynamoDBStore,
    put: Put,
    tenant: str,
    change: Callable[[DynamoDBStore, str, str], None],
    make_event: Callable[[], NewEvent],
    stored_ms: int,
    left: list[int],
) -> None:
    sharded.inboxes.save(tenant, Inbox("crm", None, NOW))
    (event_id,) = put([make_event()], stored_ms)
    change(sharded, tenant, event_id)
    check_twice(sharded, tenant)

    assert counts_of_shards(sharded, tenant) == left
    assert ids(sharded.events.claim(tenant, "crm", EVERYTHING, CHECKED_MS).events) == [event_id]

    sharded.events.erase(tenant, event_id, CHECKED_MS)
    check_twice(sharded, tenant, CHECKED_MS + 2 * CHECK_INTERVAL_MS)
    assert counts_of_shards(sharded, tenant) == [8]


def test_sharding_of_events_with_keys_is_removed_after_a_second_look(sharded: DynamoDBStore, tenant: str) -> None:
    """Only the index can show that none is left, and it may leave out an event that is changing."""
    sharded.events._shards.get(tenant)
    sharded.events.purge(CHECKED_MS, 100)
    assert counts_of_shards(sharded, tenant) == [4, 8]
    sharded.events.purge(CHECKED_MS + CHECK_INTERVAL_MS - 1, 100)
    assert counts_of_shards(sharded, tenant) == [4, 8]
    sharded.events.purge(CHECKED_MS + CHECK_INTERVAL_MS, 100)
    assert counts_of_shards(sharded, tenant) == [8]


def test_shardings_are_kept_for_the_retention(sharded: DynamoDBStore, tenant: str) -> None:
    check_twice(sharded, tenant, FIRST_MS + RETENTION_MS - 1 - CHECK_INTERVAL_MS)
    assert counts_of_shards(sharded, tenant) == [1, 4, 8]


def test_process_checks_a_tenant_once_an_hour(store: DynamoDBStore, put: Put, wire: Wire, tenant: str) -> None:
    put([new_event()], NOW)
    store.events._shards.get(tenant)
    store.events.purge(CHECKED_MS, 100)
    wire.reset()
    store.events.purge(CHECKED_MS + CHECK_INTERVAL_MS - 1, 100)
    assert wire.calls.total() == 0


def test_sharding_again_removes_an_empty_sharding_before_the_retention(sharded: DynamoDBStore, tenant: str) -> None:
    now_ms = FIRST_MS + CHECK_INTERVAL_MS
    sharded.tenants.shard(tenant, 8, now_ms - 1)
    assert counts_of_shards(sharded, tenant) == [1, 4, 8]
    sharded.tenants.shard(tenant, 8, now_ms)
    assert counts_of_shards(sharded, tenant) == [4, 8]


@pytest.mark.usefixtures("no_pauses")
def test_failed_check_does_not_fail_the_change(
    sharded: DynamoDBStore, store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    wire.fail("Query", Fault.SERVER_ERROR, 3)
    store.tenants.shard(tenant, 16, CHECKED_MS)
    assert wire.fault_count == 3
    assert counts_of_shards(sharded, tenant) == [1, 4, 8, 16]


@pytest.mark.usefixtures("no_pauses")
def test_number_of_shards_changed_during_a_check_is_kept(
    sharded: DynamoDBStore, store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    store.events._shards.get(tenant)
    wire.fail("UpdateItem", Fault.TIMEOUT_BEFORE, 1, then=lambda _body: sharded.tenants.shard(tenant, 16, SECOND_MS))
    store.events.purge(CHECKED_MS, 100)
    assert wire.fault_count == 1
    assert counts_of_shards(sharded, tenant) == [1, 4, 8, 16]


@pytest.mark.usefixtures("no_pauses")
def test_two_changes_at_the_same_time_both_count(
    sharded: DynamoDBStore, store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    wire.fail("UpdateItem", Fault.TIMEOUT_BEFORE, 1, then=lambda _body: sharded.tenants.shard(tenant, 16, SECOND_MS))
    store.tenants.shard(tenant, 32, SECOND_MS)
    assert wire.fault_count == 1
    assert counts_of_shards(sharded, tenant) == [1, 4, 8, 16, 32]


@pytest.mark.usefixtures("no_pauses")
def test_change_whose_response_is_lost_counts_once(
    sharded: DynamoDBStore, store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    wire.fail("UpdateItem", Fault.TIMEOUT_AFTER, 1)
    store.tenants.shard(tenant, 16, SECOND_MS)
    assert wire.fault_count == 1
    assert counts_of_shards(sharded, tenant) == [1, 4, 8, 16]


def test_earlier_number_of_shards_uses_its_partitions_again(sharded: DynamoDBStore, put: Put, tenant: str) -> None:
    (event_id,) = put([new_event()], FIRST_MS)
    sharded.tenants.shard(tenant, 4, SECOND_MS)
    shards = sharded.events._shards
    shards._cache.clear()
    assert len(shards.get(tenant).index_partitions(DEFAULT_INBOX)) == 1 + 4 + 8

    check_twice(sharded, tenant, CHECKED_MS + NOTICE_MS)
    assert shards.get(tenant).index_partitions(DEFAULT_INBOX) == [f"{tenant}##{shard}" for shard in range(4)]
    assert claim(sharded, tenant, now_ms=CHECKED_MS) == [event_id]


def test_one_partition_again(sharded: DynamoDBStore, put: Put, tenant: str) -> None:
    sharded.tenants.shard(tenant, 1, SECOND_MS)
    sharded.events._shards._cache.clear()
    stored = put([new_event(), keyed_event()], CHECKED_MS)
    check_twice(sharded, tenant, CHECKED_MS + NOTICE_MS)

    assert sharded.events._shards.get(tenant).index_partitions(DEFAULT_INBOX) == [tenant]
    assert claim(sharded, tenant, now_ms=CHECKED_MS) == stored


def test_tables_that_are_not_upgraded_keep_all_shardings(
    sharded: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Release 0.1.0 reads the first partition in any case, and may write to it."""
    monkeypatch.setattr(sharded.schema, "get", lambda: 1)
    check_twice(sharded, tenant)
    assert counts_of_shards(sharded, tenant) == [1, 4, 8]


def test_sharding_is_kept_while_another_tenants_entry_is_listed(
    harness: DynamoDBHarness, sharded: DynamoDBStore, tenant: str
) -> None:
    """A page of the index without own entries does not show that there are none."""
    entry = layout.event_key("another", new_event().event_id) | {
        "gsi1pk": layout.text(f"{tenant}##0"),
        "gsi1sk": layout.text("delivered#1"),
    }
    harness.connection.call("put_item", TableName=harness.connection.table(EVENTS), Item=entry)
    check_twice(sharded, tenant)
    assert counts_of_shards(sharded, tenant) == [4, 8]


def test_tenant_sharded_before_the_upgrade_keeps_its_partitions(
    uncached_store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, keyed = uncached_store, keyed_event()
    store.tenants.create(named(tenant), [audit_entry()])
    with monkeypatch.context() as before_upgrade:
        before_upgrade.setattr(store.schema, "get", lambda: 1)
        store.tenants.shard(tenant, 8, NOW)
    store.events.put(tenant, [keyed], FIRST_MS, EXPIRES_AT_S)
    store.tenants.shard(tenant, 8, FIRST_MS)
    shards = [f"{tenant}##{shard}" for shard in range(8)]

    assert counts_of_shards(store, tenant) == [1, 8, 8]
    assert store.events._shards.get(tenant).index_partitions(DEFAULT_INBOX) == [tenant, *shards]
    check_twice(store, tenant)
    assert counts_of_shards(store, tenant) == [1, 8]
    assert claim(store, tenant, now_ms=CHECKED_MS) == [keyed.event_id]

    assert store.events.erase(tenant, keyed.event_id, CHECKED_MS)
    check_twice(store, tenant, CHECKED_MS + 2 * CHECK_INTERVAL_MS)
    assert counts_of_shards(store, tenant) == [8]
    assert store.events._shards.get(tenant).index_partitions(DEFAULT_INBOX) == shards


def test_idempotency_key_used_before_is_found_after_a_check(uncached_store: DynamoDBStore, tenant: str) -> None:
    """The one shard is the partition of before, but new events with keys are elsewhere."""
    store, keyed = uncached_store, keyed_event()
    store.tenants.create(named(tenant), [audit_entry()])
    store.events.put(tenant, [keyed], NOW, EXPIRES_AT_S)
    store.tenants.shard(tenant, 1, NOW)
    store.events._shards._cache.clear()
    check_twice(store, tenant)

    assert counts_of_shards(store, tenant) == [1, 1]
    assert store.events.put(tenant, [keyed], CHECKED_MS, EXPIRES_AT_S)[0].repeated


def test_sharding_stays_while_an_event_is_left_that_the_status_index_does_not_list(
    harness: DynamoDBHarness, put: Put, tenant: str
) -> None:
    events = put([keyed_event()], FIRST_MS)
    unlisting = DynamoDBStore(harness.connection, MAX_DELIVERIES, 0, list_delivered=False)
    assert claim(unlisting, tenant, now_ms=FIRST_MS) == events
    check_twice(unlisting, tenant)
    assert 4 in counts_of_shards(unlisting, tenant)
    listed = unlisting.events.page(
        tenant, Selection(event_type="order.created"), Order.OLDEST, EVERYTHING, None, CHECKED_MS
    )
    assert ids(listed.events) == events
