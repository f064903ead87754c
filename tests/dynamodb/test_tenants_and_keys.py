"""Tenants and API keys: their items and indexes, and concurrent changes."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX
from inbox.domain.keys import KeyStatus
from inbox.domain.stats import Span
from inbox.domain.tenants import TenantSelection
from inbox.errors import EmailTaken, StoreUnavailable, TenantExists
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.layout import TENANTS, counter_key, tenant_key
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import NOW, api_key, audit_entry
from tests.engines.harnesses import DynamoDBHarness
from tests.engines.wire import Fault, Wire

INDEXES = ["EmailIndex", "TenantStatusIndex", "ActiveIndex"]
MORE_THAN_A_TRANSACTION = 120


def items_of(harness: DynamoDBHarness, tenant: str, **index: str) -> list[dict[str, Any]]:
    """Returns all items that contain the tenant's name, from the table or one of its indexes."""
    scan = harness.connection.client.get_paginator("scan")
    pages = scan.paginate(TableName=harness.connection.table("Tenants"), **index)
    return [item for item in pages.search("Items") if tenant in str(item)]


def query_email_index(harness: DynamoDBHarness, email: str) -> list[str]:
    response = harness.connection.call(
        "query",
        TableName=harness.connection.table("Tenants"),
        IndexName="EmailIndex",
        KeyConditionExpression="email = :email",
        ExpressionAttributeValues={":email": {"S": email}},
    )
    return [item["tenant_id"]["S"] for item in response["Items"]]


def test_item_of_a_tenant_is_as_documented(harness: DynamoDBHarness, store: DynamoDBStore, tenant: str) -> None:
    full = named(
        tenant,
        organization_name="Acme",
        email=f"Ops@{tenant}.example",
        destination_email="in@acme.example",
        rate_limit=0,
        updated_at_ms=NOW + 1,
        active=False,
        version=3,
    )
    store.tenants.create(full, [audit_entry(3)])

    assert harness.connection.get("Tenants", tenant_key(tenant)) == {
        "PK": {"S": f"TENANT#{tenant}"},
        "SK": {"S": "METADATA"},
        "tenant_id": {"S": tenant},
        "organization_name": {"S": "Acme"},
        "email": {"S": f"ops@{tenant}.example"},
        "email_as_given": {"S": f"Ops@{tenant}.example"},
        "destination_email": {"S": "in@acme.example"},
        "rate_limit": {"N": "0"},
        "status": {"S": "REGISTERED"},
        "active": {"S": "false"},
        "date_created": {"S": "2100-01-01T00:00:00.123Z"},
        "date_last_updated": {"S": "2100-01-01T00:00:00.124Z"},
        "last_updated_by": {"S": "key_admin"},
        "version": {"N": "3"},
    }
    assert store.tenants.get(tenant) == full


def test_item_lacks_attributes_that_the_tenant_does_not_have(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    plain = named(tenant, version=2)
    full = named(tenant, organization_name="Acme", email=f"O@{tenant}.example", destination_email="d@e.f", rate_limit=1)
    store.tenants.create(full, [audit_entry(1)])
    assert store.tenants.update(plain, 1, [audit_entry(2)])

    item = harness.connection.get("Tenants", tenant_key(tenant)) or {}
    absent = {"organization_name", "email", "email_as_given", "destination_email", "rate_limit"}
    assert not absent & set(item)
    assert store.tenants.get(tenant) == plain


def test_email_index_contains_the_email_in_lower_case(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    store.tenants.create(named(tenant, email=f"Ops@{tenant}.Example"), [audit_entry()])

    assert query_email_index(harness, f"ops@{tenant}.example") == [tenant]


@pytest.mark.parametrize("index", INDEXES)
def test_indexes_contain_only_tenants(harness: DynamoDBHarness, store: DynamoDBStore, tenant: str, index: str) -> None:
    store.tenants.create(named(tenant, email=f"ops@{tenant}.example"), [audit_entry()])
    store.keys.create(api_key(tenant))

    assert [item["SK"]["S"] for item in items_of(harness, tenant, IndexName=index)] == ["METADATA"]
    kinds = sorted(item["PK"]["S"].partition("#")[0] for item in items_of(harness, tenant))
    # The TENANT items are the tenant, its audit log and its key. The item of the key's ID does not name the tenant.
    assert kinds == ["EMAIL", "TENANT", "TENANT", "TENANT"]


def test_audit_log_longer_than_a_transaction_is_stored(store: DynamoDBStore, tenant: str) -> None:
    half = [audit_entry(number) for number in range(1, MORE_THAN_A_TRANSACTION + 1)]
    other = [audit_entry(number) for number in range(len(half) + 1, 2 * len(half) + 1)]
    store.tenants.create(named(tenant, version=len(half)), half)
    assert store.tenants.update(named(tenant, version=2 * len(half)), len(half), other)

    assert store.tenants.audit_log(tenant, 999, None) == [*half, *other][::-1]


def call_and_catch(act: Callable[[], object]) -> object:
    """Returns the result of `act`, or the type of its error."""
    try:
        return act()
    except (TenantExists, EmailTaken) as refused:
        return type(refused)


def test_refused_change_leaves_nothing_of_a_long_audit_log(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    store.tenants.create(named(tenant, email=f"o@{tenant}.example"), [audit_entry()])
    store.tenants.create(named(f"{tenant}-2"), [audit_entry()])
    before = items_of(harness, tenant)
    entries = [replace(audit_entry(number), by="nobody") for number in range(1, MORE_THAN_A_TRANSACTION + 1)]

    outcomes = [
        call_and_catch(lambda: store.tenants.create(named(tenant), entries)),
        call_and_catch(lambda: store.tenants.create(named(f"{tenant}-3", email=f"O@{tenant}.example"), entries)),
        call_and_catch(lambda: store.tenants.update(named(tenant, version=9), 2, entries)),
        call_and_catch(lambda: store.tenants.update(named(f"{tenant}-2", email=f"o@{tenant}.example"), 1, entries)),
    ]
    assert outcomes == [TenantExists, EmailTaken, False, EmailTaken]
    assert items_of(harness, tenant) == before


def test_update_keeps_the_shards(harness: DynamoDBHarness, store: DynamoDBStore, tenant: str) -> None:
    store.tenants.create(named(tenant), [audit_entry(1)])
    store.tenants.shard(tenant, 4, NOW)
    shards = (harness.connection.get("Tenants", tenant_key(tenant)) or {})["shards"]

    assert store.tenants.update(named(tenant, rate_limit=5, version=2), 1, [audit_entry(2)])
    assert (harness.connection.get("Tenants", tenant_key(tenant)) or {})["shards"] == shards


def test_tenant_listed_in_two_states_is_returned_once_in_the_later_state(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    for version in (1, 2):
        each = named(tenant, version=version, active=version == 1)
        if version == 1:
            store.tenants.create(each, [audit_entry(1)])
        else:
            assert store.tenants.update(each, 1, [audit_entry(2)])
        shown.append(harness.connection.get("Tenants", tenant_key(tenant)))

    def query_lagging_index(**parameters: Any) -> Any:
        active = parameters["ExpressionAttributeValues"][":partition"]
        return {"Items": [item for item in shown if item and item["active"] == active]}

    monkeypatch.setattr(store._connection.client, "query", query_lagging_index)
    assert store.tenants.page(TenantSelection(include_inactive=True), 9, None) == [each]


def test_listing_all_tenants_reads_nothing_but_tenants(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    store.tenants.create(named(tenant), [audit_entry()])
    for day in range(20):
        item = {**counter_key(tenant, DEFAULT_INBOX, Span.DAY, NOW - day * Span.DAY.ms), "filling": {"S": "x" * 4_000}}
        store._connection.call("put_item", TableName=store._connection.table(TENANTS), Item=item)
    wire.reset()
    assert tenant in [each.tenant_id for each in store.tenants.all()]
    # The queries for active and for inactive tenants cost half a unit each.
    assert wire.read_units == 1


def race(store: DynamoDBStore, monkeypatch: pytest.MonkeyPatch, acts: list[Callable[[], object]]) -> list[object]:
    """Returns the outcomes. No call writes before all have read."""
    have_read = threading.Barrier(len(acts))
    transact = store._connection.transact

    def write_together(*writes: dict[str, Any]) -> None:
        have_read.wait(30)
        transact(*writes)

    monkeypatch.setattr(store._connection, "transact", write_together)
    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(call_and_catch, acts))


def test_one_of_eight_concurrent_creations_gets_the_email(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = [named(f"{tenant}-{number}", email=f"Ops@{tenant}.example") for number in range(8)]
    outcomes = race(store, monkeypatch, [partial(store.tenants.create, each, [audit_entry()]) for each in candidates])

    assert Counter(outcomes) == {None: 1, EmailTaken: 7}
    winner = candidates[outcomes.index(None)]
    assert store.tenants.get_by_email(f"ops@{tenant}.example") == winner
    found = {item["PK"]["S"] for item in items_of(harness, tenant)}
    assert found == {f"TENANT#{winner.tenant_id}", f"EMAIL#ops@{tenant}.example"}
    assert query_email_index(harness, f"ops@{tenant}.example") == [winner.tenant_id]


def test_one_of_eight_concurrent_creations_gets_the_id(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The email address is taken too, but the tenant ID is reported first.
    candidates = [named(tenant, email=f"ops@{tenant}.example", rate_limit=number) for number in range(8)]
    outcomes = race(store, monkeypatch, [partial(store.tenants.create, each, [audit_entry()]) for each in candidates])

    assert Counter(outcomes) == {None: 1, TenantExists: 7}
    assert store.tenants.get(tenant) == candidates[outcomes.index(None)]


def test_one_of_eight_concurrent_updates_of_a_version_succeeds(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.tenants.create(named(tenant), [audit_entry(1)])
    candidates = [named(tenant, email=f"ops{number}@{tenant}.example", version=2) for number in range(8)]
    outcomes = race(
        store, monkeypatch, [partial(store.tenants.update, each, 1, [audit_entry(2)]) for each in candidates]
    )

    assert Counter(outcomes) == {True: 1, False: 7}
    winner = candidates[outcomes.index(True)]
    assert [store.tenants.get_by_email(each.email or "") for each in candidates].count(None) == 7
    assert store.tenants.get(tenant) == winner


def test_one_of_two_concurrent_updates_gets_the_email(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = [named(f"{tenant}-{number}", email=f"ops@{tenant}.example", version=2) for number in range(2)]
    for each in candidates:
        store.tenants.create(replace(each, email=None, version=1), [audit_entry(1)])
    outcomes = race(
        store, monkeypatch, [partial(store.tenants.update, each, 1, [audit_entry(2)]) for each in candidates]
    )

    assert Counter(outcomes) == {True: 1, EmailTaken: 1}
    assert store.tenants.get_by_email(f"ops@{tenant}.example") == candidates[outcomes.index(True)]


def test_key_that_is_revoked_while_it_is_rotated_has_no_successor(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    key, successor = api_key(tenant), api_key(tenant)
    store.tenants.create(named(tenant), [audit_entry()])
    store.keys.create(key)
    wire.fail("TransactWriteItems", Fault.THROTTLED, 1, then=lambda _body: other_store.keys.revoke(key.key_id))

    assert store.keys.rotate(key.key_id, successor, NOW + 9) is False
    assert store.keys.all(tenant) == [replace(key, status=KeyStatus.REVOKED)]


@pytest.mark.parametrize("expires_at_ms", [None, NOW + 20])
def test_earlier_expiry_of_two_concurrent_rotations_counts(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, expires_at_ms: int | None
) -> None:
    key, mine, theirs = api_key(tenant, expires_at_ms=expires_at_ms), api_key(tenant), api_key(tenant)
    store.tenants.create(named(tenant), [audit_entry()])
    store.keys.create(key)

    def rotate_too(_body: dict[str, Any]) -> None:
        assert other_store.keys.rotate(key.key_id, theirs, NOW + 5)

    wire.fail("TransactWriteItems", Fault.THROTTLED, 1, then=rotate_too)
    assert store.keys.rotate(key.key_id, mine, NOW + 9)
    assert set(store.keys.all(tenant)) == {replace(key, expires_at_ms=NOW + 5), mine, theirs}


@pytest.mark.usefixtures("no_pauses")
def test_key_that_keeps_changing_cannot_be_rotated(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = api_key(tenant)
    store.tenants.create(named(tenant), [audit_entry()])
    store.keys.create(key)
    outdated_item = store.keys._item(key.key_id)
    assert store.keys.rotate(key.key_id, api_key(tenant), NOW + 9)
    monkeypatch.setattr(store.keys, "_item", lambda _key_id: outdated_item)

    with pytest.raises(StoreUnavailable):
        store.keys.rotate(key.key_id, api_key(tenant), NOW + 5)
