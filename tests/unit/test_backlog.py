"""The oldest claimable event of each inbox."""

import pytest

from inbox.domain.events import DEFAULT_INBOX, NewEvent, PageSize, random_event_id
from inbox.domain.inboxes import Inbox
from inbox.domain.tenants import TenantStatus
from inbox.services.backlog import InboxBacklog, find_backlog
from inbox.services.tenants import TenantService
from inbox.store.sqlite import SQLiteStore
from tests.contract.samples import tenant as make_tenant

NOW_MS = 1_732_140_249_123
RETENTION_SECONDS = 3600
EVERYTHING = PageSize(500, 1_000_000)


def create_tenants(store: SQLiteStore, *tenant_ids: str) -> None:
    for tenant_id in tenant_ids:
        TenantService(store.tenants, lambda: NOW_MS).create("test", tenant_id, status=TenantStatus.REGISTERED)


def put(store: SQLiteStore, tenant_id: str, age_seconds: float, event_type: str | None = None) -> None:
    now_ms = NOW_MS - int(age_seconds * 1000)
    event = NewEvent(random_event_id(), event_type, b"{}")
    store.events.put(tenant_id, [event], now_ms, now_ms // 1000 + RETENTION_SECONDS)


def list_backlogs(store: SQLiteStore) -> list[InboxBacklog]:
    return list(find_backlog(store, lambda: NOW_MS))


def test_age_is_that_of_the_oldest_claimable_event(store: SQLiteStore) -> None:
    create_tenants(store, "acme", "beta", "idle")
    for name in ("crm", "idle"):
        store.inboxes.save("acme", Inbox(name, (f"{name}.*",), NOW_MS))
    put(store, "acme", 90.7)
    put(store, "beta", 60)
    put(store, "acme", 40, "crm.new")
    put(store, "acme", 30)
    assert list_backlogs(store) == [
        InboxBacklog("acme", DEFAULT_INBOX, NOW_MS - 90_700, 90),
        InboxBacklog("acme", "crm", NOW_MS - 40_000, 40),
        InboxBacklog("beta", DEFAULT_INBOX, NOW_MS - 60_000, 60),
    ]


def test_disabled_default_is_left_out(store: SQLiteStore) -> None:
    create_tenants(store, "acme", "beta")
    store.inboxes.save("acme", Inbox("crm", None, NOW_MS))
    put(store, "acme", 90)
    put(store, "beta", 60)
    store.inboxes.set_default_enabled("acme", False)
    put(store, "acme", 40)
    store.events.claim("acme", "crm", PageSize(1, 1), NOW_MS)
    assert [(each.tenant_id, each.inbox) for each in list_backlogs(store)] == [
        ("acme", "crm"),
        ("beta", DEFAULT_INBOX),
    ]
    store.inboxes.set_default_enabled("acme", True)
    assert list_backlogs(store)[0] == InboxBacklog("acme", DEFAULT_INBOX, NOW_MS - 90_000, 90)


def test_leased_delivered_and_expired_events_are_left_out(store: SQLiteStore) -> None:
    create_tenants(store, "acme")
    put(store, "acme", RETENTION_SECONDS + 1)
    put(store, "acme", 50)
    store.events.claim("acme", DEFAULT_INBOX, EVERYTHING, NOW_MS)
    put(store, "acme", 40)
    store.events.claim("acme", DEFAULT_INBOX, EVERYTHING, NOW_MS, NOW_MS + 60_000)
    assert list_backlogs(store) == []


def test_event_from_the_future_has_age_zero(store: SQLiteStore) -> None:
    create_tenants(store, "acme")
    put(store, "acme", -3)
    assert [each.age_seconds for each in list_backlogs(store)] == [0]


def test_suspended_and_deleted_tenants_are_left_out(store: SQLiteStore) -> None:
    create_tenants(store, "suspended", "deleted")
    put(store, "suspended", 50)
    put(store, "deleted", 50)
    tenant_service = TenantService(store.tenants, lambda: NOW_MS)
    tenant_service.set_status("suspended", "test", TenantStatus.SUSPENDED)
    tenant_service.delete("deleted", "test")
    assert list_backlogs(store) == []


def test_tenant_deleted_during_the_search_is_ignored(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    create_tenants(store, "acme")
    put(store, "acme", 5)
    tenants = [make_tenant("deleted"), *store.tenants.all()]
    monkeypatch.setattr(type(store.tenants), "all", lambda _self: tenants)
    assert [each.tenant_id for each in list_backlogs(store)] == ["acme"]
