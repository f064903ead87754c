"""What a store promises about keys and tenants: `KeyStore` and `TenantStore` in `inbox.store.port`."""

from dataclasses import replace

import pytest

from authorizer.resolver import KeyRecord, Principal
from inbox.errors import AlreadyExists, NotFound
from inbox.store.port import Store
from inbox.tenants import ApiKey, KeyStatus, Scope, Tenant, TenantStatus
from tests.engines.harnesses import Harness

ACME = Tenant("acme", "Acme Corp.", "ops@acme.example", TenantStatus.ACTIVE, 1000)
KEY = ApiKey(
    key_id="key_1",
    key_hash="aa" * 32,
    tenant_id="acme",
    name="zapier",
    scopes=frozenset({Scope.INBOX_READ, Scope.EVENTS_WRITE}),
    status=KeyStatus.ACTIVE,
    created_at_ms=2000,
    expires_at_ms=9000,
)


def test_a_tenant_is_kept(harness: Harness) -> None:
    harness.store.tenants.create(ACME)
    harness.reopen()

    assert harness.store.tenants.get("acme") == ACME
    assert harness.store.tenants.get("globex") is None


def test_tenants_are_listed_by_id(store: Store) -> None:
    zulu = replace(ACME, tenant_id="zulu", email=None)
    store.tenants.create(zulu)
    store.tenants.create(ACME)

    assert store.tenants.all() == [ACME, zulu]


def test_a_tenant_id_is_taken_once(store: Store) -> None:
    store.tenants.create(ACME)
    with pytest.raises(AlreadyExists):
        store.tenants.create(replace(ACME, name="Somebody else"))

    assert store.tenants.get("acme") == ACME


def test_a_key_is_found_together_with_its_tenant(harness: Harness) -> None:
    harness.store.tenants.create(ACME)
    harness.store.keys.add(KEY)
    harness.reopen()

    principal = Principal("acme", "Acme Corp.", True, "key_1", frozenset({"events:write", "inbox:read"}))
    assert harness.store.keys.find(KEY.key_hash) == KeyRecord(principal, 9000)
    assert harness.store.keys.find("bb" * 32) is None


def test_a_key_of_a_suspended_tenant_says_so(store: Store) -> None:
    store.tenants.create(replace(ACME, status=TenantStatus.SUSPENDED))
    store.keys.add(KEY)

    record = store.keys.find(KEY.key_hash)
    assert record is not None
    assert record.principal.tenant_active is False


def test_a_key_needs_a_tenant(store: Store) -> None:
    with pytest.raises(NotFound):
        store.keys.add(KEY)

    assert store.keys.find(KEY.key_hash) is None


def test_a_revoked_key_is_not_found_but_still_listed(store: Store) -> None:
    store.tenants.create(ACME)
    store.keys.add(KEY)

    assert store.keys.revoke("key_1") is True
    assert store.keys.revoke("key_1") is True
    assert store.keys.find(KEY.key_hash) is None
    assert store.keys.of_tenant("acme") == [replace(KEY, status=KeyStatus.REVOKED)]


def test_revoking_an_unknown_key_says_so(store: Store) -> None:
    assert store.keys.revoke("key_none") is False


def test_keys_are_listed_by_tenant_the_oldest_first(store: Store) -> None:
    store.tenants.create(ACME)
    store.tenants.create(replace(ACME, tenant_id="globex"))
    younger = replace(KEY, key_id="key_0", key_hash="00" * 32, created_at_ms=3000, expires_at_ms=None)
    foreign = replace(KEY, key_id="key_2", key_hash="dd" * 32, tenant_id="globex")
    for key in (younger, KEY, foreign):
        store.keys.add(key)

    assert store.keys.of_tenant("acme") == [KEY, younger]


def test_the_check_passes_on_a_store_that_works(store: Store) -> None:
    store.check()
