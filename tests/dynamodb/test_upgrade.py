"""This release on the tables of release 0.1.0, before and after `inbox init`."""

import json

import pytest

from inbox.domain.events import DEFAULT_INBOX, NewEvent, Order, Receipt, Selection, Status
from inbox.domain.keys import Scope
from inbox.domain.stats import Span
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from tests.contract.samples import ids, receipts
from tests.dynamodb.conftest import EVERYTHING, claim, new_event, poll
from tests.dynamodb.earlier_release import EarlierTables, create_tables
from tests.engines.harnesses import MAX_DELIVERIES

# After the short lease has expired; before the delay and the long leases end.
LATER_MS = 120_000
AFTER_DELAY_MS = 301_000
AFTER_LEASES_MS = 601_000

STATUSES = {
    "acknowledged": Status.DELIVERED,
    "attempted 1": Status.DELIVERED,
    "attempted 2": Status.DELIVERED,
    "dead": Status.DEAD,
    "delayed": Status.UNDELIVERED,
    "delivered": Status.DELIVERED,
    "keyed": Status.UNDELIVERED,
    "large": Status.UNDELIVERED,
    "lease expired": Status.UNDELIVERED,
    "leased": Status.LEASED,
    "number": Status.UNDELIVERED,
    "without a type": Status.UNDELIVERED,
}
CLAIMABLE = ["lease expired", "large", "number", "without a type", "keyed"]
SHARDED = ["before 0", "before 1", *(f"after {number}" for number in range(6))]

each_sharded_tenant = pytest.mark.parametrize("tenant_id", ["sharded", "sharded-before"])


@pytest.fixture
def earlier(empty_connection: Connection) -> EarlierTables:
    return create_tables(empty_connection)


@pytest.fixture(params=["before init", "after init"])
def upgraded(request: pytest.FixtureRequest, earlier: EarlierTables) -> DynamoDBStore:
    """This release on the tables of the earlier one."""
    store = DynamoDBStore(earlier.connection, MAX_DELIVERIES)
    if request.param == "after init":
        store.init()
    assert store.schema.get() == (2 if request.param == "after init" else 1)
    return store


def test_service_is_ready(upgraded: DynamoDBStore) -> None:
    upgraded.check()


def test_every_event_has_its_status(upgraded: DynamoDBStore, earlier: EarlierTables) -> None:
    now_ms = earlier.now_ms + LATER_MS
    for description, event_id in earlier.events["acme"].items():
        event = upgraded.events.get("acme", DEFAULT_INBOX, event_id, now_ms)
        assert event is not None
        assert (event.event_id, event.status) == (event_id, STATUSES[description]), description


def test_history_lists_every_event(upgraded: DynamoDBStore, earlier: EarlierTables) -> None:
    now_ms = earlier.now_ms + LATER_MS
    for selection, expected in (
        (Selection(), STATUSES.keys()),
        (Selection(event_type="order.created"), STATUSES.keys() - {"without a type"}),
        (Selection("crm"), {"large", "number", "keyed"}),
        *((Selection(status=each), {name for name, status in STATUSES.items() if status is each}) for each in Status),
    ):
        listed = upgraded.events.page("acme", selection, Order.OLDEST, EVERYTHING, None, now_ms)
        assert sorted(ids(listed.events)) == sorted(earlier.ids("acme", *expected)), selection


def test_payloads_are_read(upgraded: DynamoDBStore, earlier: EarlierTables) -> None:
    def payload(description: str) -> bytes:
        (event_id,) = earlier.ids("acme", description)
        event = upgraded.events.get("acme", DEFAULT_INBOX, event_id, earlier.now_ms)
        assert event is not None
        return event.payload

    assert payload("keyed") == b'{"order":1001}'
    assert payload("number") == b'{"n":1.0,"e":1e999}'
    assert json.loads(payload("without a type")) == {"a": [1, {"b": None}]}
    assert len(payload("large")) == 12_016
    assert json.loads(payload("large"))


def test_claims_return_the_oldest_events_first(upgraded: DynamoDBStore, earlier: EarlierTables) -> None:
    now_ms = earlier.now_ms + LATER_MS
    first, *others = earlier.ids("acme", *CLAIMABLE)
    assert claim(upgraded, "acme", 1, now_ms=now_ms) == [first]
    assert claim(upgraded, "acme", now_ms=now_ms) == others
    assert claim(upgraded, "acme", now_ms=now_ms) == []
    assert claim(upgraded, "acme", inbox="crm", now_ms=now_ms) == earlier.ids("acme", "number", "keyed")


def test_new_events_follow_the_earlier_ones(upgraded: DynamoDBStore, earlier: EarlierTables) -> None:
    now_ms = earlier.now_ms + LATER_MS
    event = new_event()
    upgraded.events.put("acme", [event], now_ms, now_ms // 1000 + 3600)
    expected = [*earlier.ids("acme", *CLAIMABLE), event.event_id]
    assert claim(upgraded, "acme", now_ms=now_ms + LATER_MS) == expected


def test_delays_and_leases_end_at_their_time(upgraded: DynamoDBStore, earlier: EarlierTables) -> None:
    claim(upgraded, "acme", now_ms=earlier.now_ms + LATER_MS)
    assert claim(upgraded, "acme", now_ms=earlier.now_ms + AFTER_DELAY_MS) == earlier.ids("acme", "delayed")
    assert claim(upgraded, "acme", now_ms=earlier.now_ms + AFTER_LEASES_MS) == earlier.ids("acme", "leased")


def test_lease_is_extended_and_acknowledged(upgraded: DynamoDBStore, earlier: EarlierTables) -> None:
    now_ms = earlier.now_ms + LATER_MS
    (event_id,) = earlier.ids("acme", "leased")
    receipt = Receipt(DEFAULT_INBOX, event_id, earlier.leased_claim_id)
    assert upgraded.events.extend("acme", [receipt], earlier.now_ms + 2 * AFTER_LEASES_MS, now_ms) == [True]
    assert upgraded.events.acknowledge("acme", [receipt], earlier.now_ms + AFTER_LEASES_MS) == [True]
    event = upgraded.events.get("acme", DEFAULT_INBOX, event_id, now_ms)
    assert event is not None
    assert event.status is Status.DELIVERED


def test_lease_is_released(upgraded: DynamoDBStore, earlier: EarlierTables) -> None:
    now_ms = earlier.now_ms + LATER_MS
    (event_id,) = earlier.ids("acme", "leased")
    receipt = Receipt(DEFAULT_INBOX, event_id, earlier.leased_claim_id)
    assert upgraded.events.release("acme", [receipt], now_ms, now_ms) == [True]
    # It returns to its old position.
    expected = earlier.ids("acme", "lease expired", "leased", *CLAIMABLE[1:])
    assert claim(upgraded, "acme", now_ms=now_ms) == expected


def test_events_are_leased_and_acknowledged(upgraded: DynamoDBStore, earlier: EarlierTables) -> None:
    now_ms = earlier.now_ms + LATER_MS
    leased = poll(upgraded, "acme", now_ms=now_ms, lease_until_ms=now_ms + 60_000)
    assert ids(leased) == earlier.ids("acme", *CLAIMABLE)
    assert upgraded.events.acknowledge("acme", receipts(leased), now_ms + 1) == [True] * len(leased)
    assert claim(upgraded, "acme", now_ms=now_ms + 60_001) == []


def test_repeated_poll_returns_the_same_events(upgraded: DynamoDBStore, earlier: EarlierTables) -> None:
    repeated = claim(upgraded, "acme", attempt="attempt-1", now_ms=earlier.now_ms + 1_000)
    assert repeated == earlier.ids("acme", "attempted 1", "attempted 2")


def test_repeated_event_is_found_by_its_idempotency_key(upgraded: DynamoDBStore, earlier: EarlierTables) -> None:
    now_ms = earlier.now_ms + LATER_MS
    (event_id,) = earlier.ids("acme", "keyed")
    event = NewEvent(event_id, "order.created", b'{"order":1001}', b"f" * 32)
    (result,) = upgraded.events.put("acme", [event], now_ms, now_ms // 1000 + 3600)
    assert result.repeated


def test_delivered_and_dead_events_are_replayed_and_erased(upgraded: DynamoDBStore, earlier: EarlierTables) -> None:
    now_ms = earlier.now_ms + LATER_MS
    for description in ("delivered", "dead"):
        (event_id,) = earlier.ids("acme", description)
        replayed = upgraded.events.replay("acme", DEFAULT_INBOX, event_id, now_ms)
        assert replayed is not None
        assert replayed.status is Status.UNDELIVERED
    for event_id in earlier.ids("acme", "delivered", "large"):
        assert upgraded.events.erase("acme", event_id, now_ms)
    assert claim(upgraded, "acme", now_ms=now_ms) == earlier.ids(
        "acme", "lease expired", "dead", "number", "without a type", "keyed"
    )


@each_sharded_tenant
def test_events_of_a_sharded_tenant_are_found(upgraded: DynamoDBStore, earlier: EarlierTables, tenant_id: str) -> None:
    now_ms = earlier.now_ms + LATER_MS
    expected = earlier.ids(tenant_id, *SHARDED)
    for event_id in expected:
        assert upgraded.events.get(tenant_id, DEFAULT_INBOX, event_id, now_ms) is not None
    listed = upgraded.events.page(tenant_id, Selection(), Order.OLDEST, EVERYTHING, None, now_ms)
    assert ids(listed.events) == expected
    assert claim(upgraded, tenant_id, now_ms=now_ms) == expected


@each_sharded_tenant
def test_idempotency_keys_of_a_sharded_tenant_are_found(
    upgraded: DynamoDBStore, earlier: EarlierTables, tenant_id: str
) -> None:
    now_ms = earlier.now_ms + LATER_MS
    for event_id in earlier.ids(tenant_id, "before 1", "after 3"):
        event = NewEvent(event_id, "order.created", b'{"order":1001}', b"k" * 32)
        (result,) = upgraded.events.put(tenant_id, [event], now_ms, now_ms // 1000 + 3600)
        assert result.repeated


def test_tenants_keys_and_inboxes_are_read(upgraded: DynamoDBStore, earlier: EarlierTables) -> None:
    assert [tenant.tenant_id for tenant in upgraded.tenants.all()] == ["acme", "sharded", "sharded-before"]
    for tenant_id in earlier.events:
        tenant = upgraded.tenants.get_by_email(f"ops@{tenant_id}.example")
        assert tenant is not None
        assert (tenant.tenant_id, tenant.created_at_ms) == (tenant_id, earlier.now_ms)
        assert [entry.by for entry in upgraded.tenants.audit_log(tenant_id, 10, None)] == ["cli"]
        (key,) = upgraded.keys.all(tenant_id)
        assert (key.name, key.scopes) == ("shop", frozenset({Scope.EVENTS_WRITE, Scope.INBOX_READ}))
        record = upgraded.keys.get_by_hash(key.key_hash)
        assert record is not None
        assert (record.principal.tenant_id, record.principal.tenant_active) == (tenant_id, True)
    (inbox,) = upgraded.inboxes.all("acme")
    assert (inbox.name, inbox.event_types) == ("crm", ("order.*",))


def test_counters_are_read(upgraded: DynamoDBStore, earlier: EarlierTables) -> None:
    counted = upgraded.counters.list_counts("acme", DEFAULT_INBOX, Span.DAY, 0)
    assert sum(each.counts.received for each in counted) == len(earlier.events["acme"])
