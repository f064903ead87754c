"""API keys."""

from dataclasses import replace

import pytest

from authorizer.resolver import KeyRecord, Principal
from inbox.domain.keys import ApiKey, KeyStatus, Scope
from inbox.domain.tenants import TenantStatus
from inbox.errors import NotFound
from inbox.store.interface import Store
from tests.contract.samples import MINUTE, NOW, create_tenants, run_concurrently, tenant, update_tenant
from tests.engines.harnesses import Harness

ACME = tenant("acme", organization_name="Acme Corp.", rate_limit=25)
KEY = ApiKey(
    key_id="key_1",
    key_hash="aa" * 32,
    tenant_id="acme",
    name="zapier",
    scopes=frozenset({Scope.INBOX_READ, Scope.EVENTS_WRITE}),
    status=KeyStatus.ACTIVE,
    created_at_ms=NOW,
    expires_at_ms=NOW + 9 * MINUTE,
    lifetime_ms=9 * MINUTE,
    hint="ibx_…4f2a",
)
BARE = replace(KEY, key_id="key_0", key_hash="00" * 32, name="", scopes=frozenset(), expires_at_ms=None, hint=None)
SUCCESSOR = replace(KEY, key_id="key_2", key_hash="bb" * 32, created_at_ms=NOW + 1, hint="ibx_…77b0")
FOUND = KeyRecord(
    Principal("acme", "Acme Corp.", True, "key_1", frozenset({"events:write", "inbox:read"}), 25), NOW + 9 * MINUTE
)


def look_up(store: Store, key: ApiKey = KEY) -> KeyRecord:
    record = store.keys.get_by_hash(key.key_hash)
    assert record is not None
    return record


@pytest.mark.parametrize("key", [KEY, BARE, replace(KEY, last_used_at_ms=NOW + 5)], ids=["full", "bare", "used"])
def test_key_survives_a_restart(harness: Harness, key: ApiKey) -> None:
    create_tenants(harness.store, ACME)
    harness.store.keys.create(key)
    harness.reopen()

    assert harness.store.keys.get(key.key_id) == key
    assert harness.store.keys.all("acme") == [key]
    assert harness.store.keys.get("key_none") is None


def test_key_is_found_with_its_tenant(harness: Harness) -> None:
    create_tenants(harness.store, ACME)
    harness.store.keys.create(KEY)
    harness.store.keys.create(BARE)
    harness.reopen()

    assert harness.store.keys.get_by_hash(KEY.key_hash) == FOUND
    assert harness.store.keys.get_by_hash(BARE.key_hash) == KeyRecord(
        Principal("acme", "Acme Corp.", True, "key_0", frozenset(), 25), None
    )
    assert harness.store.keys.get_by_hash("bb" * 32) is None
    assert harness.store.keys.get_by_hash("key_1") is None


def test_key_is_found_with_the_current_tenant(store: Store) -> None:
    create_tenants(store, ACME)
    store.keys.create(KEY)

    renamed = update_tenant(store, ACME, organization_name="Globex", rate_limit=0)
    assert look_up(store).principal == replace(FOUND.principal, tenant_name="Globex", rate_limit=0)
    update_tenant(store, renamed, organization_name=None, rate_limit=None)
    assert look_up(store).principal == replace(FOUND.principal, tenant_name="acme", rate_limit=None)


def test_key_of_a_suspended_or_deleted_tenant_is_inactive(store: Store) -> None:
    create_tenants(store, ACME)
    store.keys.create(KEY)

    suspended = ACME
    for status in TenantStatus:
        suspended = update_tenant(store, suspended, status=status)
        has_access = status is not TenantStatus.SUSPENDED
        assert look_up(store).principal == replace(FOUND.principal, tenant_active=has_access)
    resumed = update_tenant(store, suspended, status=TenantStatus.REGISTERED)
    assert look_up(store) == FOUND
    deleted = update_tenant(store, resumed, active=False)
    assert look_up(store).principal == replace(FOUND.principal, tenant_active=False)
    update_tenant(store, deleted, active=True)
    assert look_up(store) == FOUND


def test_key_of_an_unknown_tenant_is_refused(store: Store) -> None:
    with pytest.raises(NotFound):
        store.keys.create(KEY)

    assert store.keys.get_by_hash(KEY.key_hash) is None
    assert store.keys.get("key_1") is None
    assert store.keys.all("acme") == []


def test_keys_are_listed_by_tenant_oldest_first(store: Store) -> None:
    create_tenants(store, ACME, tenant("globex"))
    foreign = replace(SUCCESSOR, key_id="key_3", key_hash="dd" * 32, tenant_id="globex")
    younger = replace(BARE, created_at_ms=NOW + 2)
    for key in (younger, KEY, foreign, SUCCESSOR):
        store.keys.create(key)

    assert store.keys.all("acme") == [KEY, SUCCESSOR, younger]
    assert store.keys.all("globex") == [foreign]
    assert store.keys.all("initech") == []


def test_revoked_key_is_listed_but_not_found(harness: Harness) -> None:
    create_tenants(harness.store, ACME)
    harness.store.keys.create(KEY)
    harness.store.keys.create(BARE)
    revoked = replace(KEY, status=KeyStatus.REVOKED, last_used_at_ms=NOW + 5)

    assert harness.store.keys.revoke("key_none") is False
    assert harness.another().keys.revoke("key_1") is True
    harness.store.keys.record_use(KEY.key_hash, NOW + 5)
    assert harness.store.keys.revoke("key_1") is True
    harness.reopen()
    assert harness.store.keys.get_by_hash(KEY.key_hash) is None
    assert harness.store.keys.get("key_1") == revoked
    assert harness.store.keys.all("acme") == [BARE, revoked]


@pytest.mark.parametrize(
    ("own_expiry_ms", "expiry_ms"),
    [(None, NOW + 5), (NOW + 6, NOW + 5), (NOW + 5, NOW + 5), (NOW + 4, NOW + 4)],
    ids=["none", "later", "the same", "earlier"],
)
def test_rotated_key_expires_and_its_successor_is_active(
    harness: Harness, own_expiry_ms: int | None, expiry_ms: int
) -> None:
    create_tenants(harness.store, ACME)
    harness.store.keys.create(replace(KEY, expires_at_ms=own_expiry_ms))

    assert harness.store.keys.rotate("key_1", SUCCESSOR, NOW + 5) is True
    harness.reopen()
    assert harness.store.keys.all("acme") == [replace(KEY, expires_at_ms=expiry_ms), SUCCESSOR]
    assert look_up(harness.store) == replace(FOUND, expires_at_ms=expiry_ms)
    assert look_up(harness.store, SUCCESSOR).principal.key_id == "key_2"
    assert harness.store.keys.get("key_2") == SUCCESSOR


def test_second_rotation_does_not_extend_the_key(store: Store) -> None:
    create_tenants(store, ACME)
    store.keys.create(KEY)
    third = replace(SUCCESSOR, key_id="key_3", key_hash="cc" * 32, created_at_ms=NOW + 2)

    assert store.keys.rotate("key_1", SUCCESSOR, NOW + 5) is True
    assert store.keys.rotate("key_1", third, NOW + 50) is True
    assert store.keys.all("acme") == [replace(KEY, expires_at_ms=NOW + 5), SUCCESSOR, third]


def test_key_can_expire_without_a_successor(store: Store) -> None:
    create_tenants(store, ACME)
    store.keys.create(replace(KEY, expires_at_ms=None))
    for at_ms, expiry_ms in ((NOW + 5, NOW + 5), (NOW + 9, NOW + 5), (NOW + 3, NOW + 3)):
        assert store.keys.expire("key_1", at_ms) is True
        assert store.keys.all("acme") == [replace(KEY, expires_at_ms=expiry_ms)]

    store.keys.revoke("key_1")
    assert store.keys.expire("key_1", NOW + 1) is False
    assert store.keys.expire("key_none", NOW + 1) is False
    assert store.keys.all("acme") == [replace(KEY, expires_at_ms=NOW + 3, status=KeyStatus.REVOKED)]


EXPIRED = replace(KEY, expires_at_ms=SUCCESSOR.created_at_ms)
REVOKED = replace(KEY, status=KeyStatus.REVOKED)


@pytest.mark.parametrize("keys", [[EXPIRED], [REVOKED], []], ids=["expired", "revoked", "unknown"])
def test_inactive_or_unknown_key_cannot_be_rotated(store: Store, keys: list[ApiKey]) -> None:
    create_tenants(store, ACME)
    for key in keys:
        store.keys.create(key)

    assert store.keys.rotate("key_1", SUCCESSOR, SUCCESSOR.created_at_ms + 5) is False
    assert store.keys.all("acme") == keys
    assert store.keys.get_by_hash(SUCCESSOR.key_hash) is None
    assert store.keys.get("key_2") is None


def test_one_of_concurrent_rotations_that_expire_the_key_at_once_succeeds(harness: Harness) -> None:
    create_tenants(harness.store, ACME)
    harness.store.keys.create(replace(KEY, expires_at_ms=None))
    stores = [harness.another() for _ in range(4)]

    def rotate(worker: int) -> bool:
        successor = replace(SUCCESSOR, key_id=f"key_{worker + 2}", key_hash=f"{worker}a" * 32)
        return stores[worker].keys.rotate("key_1", successor, successor.created_at_ms)

    assert run_concurrently(4, rotate).count(True) == 1
    assert len(harness.store.keys.all("acme")) == 2


def test_deleted_key_leaves_nothing(store: Store) -> None:
    create_tenants(store, ACME)
    for key in (KEY, SUCCESSOR):
        store.keys.create(key)
    for _ in range(2):
        store.keys.delete("key_1")

    assert store.keys.all("acme") == [SUCCESSOR]
    assert store.keys.get("key_1") is None
    assert store.keys.get_by_hash(KEY.key_hash) is None
    assert store.keys.revoke("key_1") is False


def test_recording_a_use_changes_nothing_else(harness: Harness) -> None:
    create_tenants(harness.store, ACME)
    harness.store.keys.create(KEY)
    harness.store.keys.create(BARE)

    harness.store.keys.record_use(KEY.key_hash, NOW + 5)
    harness.reopen()
    assert harness.store.keys.all("acme") == [BARE, replace(KEY, last_used_at_ms=NOW + 5)]
    assert look_up(harness.store) == replace(FOUND, last_used_at_ms=NOW + 5)


def test_latest_use_is_kept(store: Store) -> None:
    create_tenants(store, ACME)
    store.keys.create(KEY)

    for delay_ms, latest_ms in ((5, 5), (7, 7), (6, 7), (7, 7), (8, 8)):
        store.keys.record_use(KEY.key_hash, NOW + delay_ms)
        assert store.keys.get("key_1") == replace(KEY, last_used_at_ms=NOW + latest_ms)


def test_use_of_an_unknown_key_leaves_nothing(store: Store) -> None:
    create_tenants(store, ACME)
    store.keys.record_use(KEY.key_hash, NOW)

    assert store.keys.get_by_hash(KEY.key_hash) is None
    assert store.keys.all("acme") == []
    store.keys.create(KEY)
    assert store.keys.get("key_1") == KEY


def test_rotation_keeps_the_last_use(store: Store) -> None:
    create_tenants(store, ACME)
    store.keys.create(KEY)
    store.keys.record_use(KEY.key_hash, NOW + 4)
    store.keys.rotate("key_1", SUCCESSOR, NOW + 5)

    assert store.keys.get("key_1") == replace(KEY, expires_at_ms=NOW + 5, last_used_at_ms=NOW + 4)


def test_latest_of_concurrent_uses_is_kept(harness: Harness) -> None:
    create_tenants(harness.store, ACME)
    harness.store.keys.create(KEY)
    stores = [harness.store, harness.another()]

    run_concurrently(8, lambda worker: stores[worker % 2].keys.record_use(KEY.key_hash, NOW + worker))
    assert harness.store.keys.get("key_1") == replace(KEY, last_used_at_ms=NOW + 7)


def test_key_revoked_during_its_rotation_is_revoked(harness: Harness) -> None:
    create_tenants(harness.store, ACME)
    harness.store.keys.create(KEY)
    stores = [harness.store, harness.another()]

    def revoke_or_rotate(worker: int) -> bool:
        keys = stores[worker].keys
        return keys.revoke("key_1") if worker == 0 else keys.rotate("key_1", SUCCESSOR, NOW + 5)

    revoked, rotated = run_concurrently(2, revoke_or_rotate)
    assert revoked is True
    assert harness.store.keys.get_by_hash(KEY.key_hash) is None
    assert (harness.store.keys.get_by_hash(SUCCESSOR.key_hash) is not None) is rotated
