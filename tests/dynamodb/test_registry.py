"""The registry's items: what they consist of, which index they are in, and how they are listed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX
from inbox.domain.stats import Span
from inbox.domain.tenants import TenantSelection
from inbox.errors import EmailTaken, TenantExists
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.layout import TENANTS, counter_key, tenant_key
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import NOW, entry, key_of
from tests.engines.harnesses import DynamoDBHarness
from tests.engines.wire import Wire

INDEXES = ["EmailIndex", "TenantStatusIndex", "ActiveIndex"]
MORE_THAN_A_TRANSACTION = 120


def items_of(harness: DynamoDBHarness, tenant: str, **index: str) -> list[dict[str, Any]]:
    """Everything that has the tenant's name in it, from the table or one of its indexes."""
    found = harness.connection.all_items("scan", TableName=harness.connection.table("Tenants"), **index)
    return [item for item in found if tenant in str(item)]


def by_index_email(harness: DynamoDBHarness, email: str) -> list[str]:
    answer = harness.connection.call(
        "query",
        TableName=harness.connection.table("Tenants"),
        IndexName="EmailIndex",
        KeyConditionExpression="email = :email",
        ExpressionAttributeValues={":email": {"S": email}},
    )
    return [item["tenant_id"]["S"] for item in answer["Items"]]


def test_a_tenant_s_item_is_that_of_the_contract(harness: DynamoDBHarness, store: DynamoDBStore, tenant: str) -> None:
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
    store.tenants.create(full, [entry(3)])

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


def test_what_a_tenant_does_not_have_is_not_in_its_item(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    plain = named(tenant, version=2)
    full = named(tenant, organization_name="Acme", email=f"O@{tenant}.example", destination_email="d@e.f", rate_limit=1)
    store.tenants.create(full, [entry(1)])
    assert store.tenants.update(plain, 1, [entry(2)])

    item = harness.connection.get("Tenants", tenant_key(tenant)) or {}
    absent = {"organization_name", "email", "email_as_given", "destination_email", "rate_limit"}
    assert not absent & set(item)
    assert store.tenants.get(tenant) == plain


def test_email_index_finds_a_tenant_by_its_e_mail_in_lower_case(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    store.tenants.create(named(tenant, email=f"Ops@{tenant}.Example"), [entry()])

    assert by_index_email(harness, f"ops@{tenant}.example") == [tenant]


@pytest.mark.parametrize("index", INDEXES)
def test_nothing_but_the_tenant_itself_is_in_an_index(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str, index: str
) -> None:
    store.tenants.create(named(tenant, email=f"ops@{tenant}.example"), [entry()])
    store.keys.create(key_of(tenant))

    assert [item["SK"]["S"] for item in items_of(harness, tenant, IndexName=index)] == ["METADATA"]
    kinds = sorted(item["PK"]["S"].partition("#")[0] for item in items_of(harness, tenant))
    # Itself, its trail and its key; the e-mail. What leads from a key's id names no tenant.
    assert kinds == ["EMAIL", "TENANT", "TENANT", "TENANT"]


def test_a_trail_longer_than_a_transaction_is_kept_whole(store: DynamoDBStore, tenant: str) -> None:
    half = [entry(number) for number in range(1, MORE_THAN_A_TRANSACTION + 1)]
    other = [entry(number) for number in range(len(half) + 1, 2 * len(half) + 1)]
    store.tenants.create(named(tenant, version=len(half)), half)
    assert store.tenants.update(named(tenant, version=2 * len(half)), len(half), other)

    assert store.tenants.audit_log(tenant, 999, None) == [*half, *other][::-1]


def outcome(act: Callable[[], object]) -> object:
    """What it answers, or the kind of error that it raises."""
    try:
        return act()
    except (TenantExists, EmailTaken) as refused:
        return type(refused)


def test_nothing_of_a_long_trail_is_left_by_what_was_refused(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    store.tenants.create(named(tenant, email=f"o@{tenant}.example"), [entry()])
    store.tenants.create(named(f"{tenant}-2"), [entry()])
    before = items_of(harness, tenant)
    trail = [replace(entry(number), by="nobody") for number in range(1, MORE_THAN_A_TRANSACTION + 1)]

    outcomes = [
        outcome(lambda: store.tenants.create(named(tenant), trail)),
        outcome(lambda: store.tenants.create(named(f"{tenant}-3", email=f"O@{tenant}.example"), trail)),
        outcome(lambda: store.tenants.update(named(tenant, version=9), 2, trail)),
        outcome(lambda: store.tenants.update(named(f"{tenant}-2", email=f"o@{tenant}.example"), 1, trail)),
    ]
    assert outcomes == [TenantExists, EmailTaken, False, EmailTaken]
    assert items_of(harness, tenant) == before


def test_a_change_keeps_the_shards(harness: DynamoDBHarness, store: DynamoDBStore, tenant: str) -> None:
    store.tenants.create(named(tenant), [entry(1)])
    store.tenants.shard(tenant, 4, NOW)
    shards = (harness.connection.get("Tenants", tenant_key(tenant)) or {})["shards"]

    assert store.tenants.update(named(tenant, rate_limit=5, version=2), 1, [entry(2)])
    assert (harness.connection.get("Tenants", tenant_key(tenant)) or {})["shards"] == shards


def test_a_tenant_that_an_index_shows_in_two_states_is_listed_once_in_the_later(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    for version in (1, 2):
        each = named(tenant, version=version, active=version == 1)
        if version == 1:
            store.tenants.create(each, [entry(1)])
        else:
            assert store.tenants.update(each, 1, [entry(2)])
        shown.append(harness.connection.get("Tenants", tenant_key(tenant)))

    def lagging(**parameters: Any) -> Any:
        active = parameters["ExpressionAttributeValues"][":partition"]
        return {"Items": [item for item in shown if item and item["active"] == active]}

    monkeypatch.setattr(store._connection.client, "query", lagging)
    assert store.tenants.page(TenantSelection(include_inactive=True), 9, None) == [each]


def test_listing_all_tenants_reads_nothing_but_tenants(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    store.tenants.create(named(tenant), [entry()])
    for day in range(20):
        item = {**counter_key(tenant, DEFAULT_INBOX, Span.DAY, NOW - day * Span.DAY.ms), "filling": {"S": "x" * 4_000}}
        store._connection.call("put_item", TableName=store._connection.table(TENANTS), Item=item)
    wire.reset()
    assert tenant in [each.tenant_id for each in store.tenants.all()]
    # Half a unit for those that are active, and for those that are not.
    assert wire.read_units == 1
