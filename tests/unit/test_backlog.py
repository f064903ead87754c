"""What waits, and since when."""

import pytest

from inbox.domain.events import DEFAULT_INBOX, NewEvent, PageSize, random_event_id
from inbox.domain.inboxes import Inbox
from inbox.domain.tenants import TenantStatus
from inbox.services.backlog import Backlog, Waiting
from inbox.services.tenants import TenantService
from inbox.store.sqlite import SQLiteStore
from tests.contract.samples import tenant as named

NOW_MS = 1_732_140_249_123
RETENTION_SECONDS = 3600
EVERYTHING = PageSize(500, 1_000_000)


def create(store: SQLiteStore, *tenant_ids: str) -> None:
    for tenant_id in tenant_ids:
        TenantService(store.tenants, lambda: NOW_MS).create("test", tenant_id, status=TenantStatus.REGISTERED)


def put(store: SQLiteStore, tenant_id: str, age_seconds: float, event_type: str | None = None) -> None:
    now_ms = NOW_MS - int(age_seconds * 1000)
    event = NewEvent(random_event_id(), event_type, b"{}")
    store.events.put(tenant_id, [event], now_ms, now_ms // 1000 + RETENTION_SECONDS)


def waiting(store: SQLiteStore) -> list[Waiting]:
    return list(Backlog(store.tenants, store.inboxes, store.events, lambda: NOW_MS).waiting())


def test_each_inbox_is_as_old_as_its_oldest_event_that_can_be_taken(store: SQLiteStore) -> None:
    create(store, "acme", "beta", "idle")
    for name in ("crm", "idle"):
        store.inboxes.save("acme", Inbox(name, (f"{name}.*",), NOW_MS))
    put(store, "acme", 90.7)
    put(store, "beta", 60)
    put(store, "acme", 40, "crm.new")
    put(store, "acme", 30)
    assert waiting(store) == [
        Waiting("acme", DEFAULT_INBOX, NOW_MS - 90_700, 90),
        Waiting("acme", "crm", NOW_MS - 40_000, 40),
        Waiting("beta", DEFAULT_INBOX, NOW_MS - 60_000, 60),
    ]


def test_default_is_left_out_while_it_is_off(store: SQLiteStore) -> None:
    create(store, "acme", "beta")
    store.inboxes.save("acme", Inbox("crm", None, NOW_MS))
    put(store, "acme", 90)
    put(store, "beta", 60)
    store.inboxes.set_default_enabled("acme", False)
    put(store, "acme", 40)
    store.events.claim("acme", "crm", PageSize(1, 1), NOW_MS)
    assert [(each.tenant_id, each.inbox) for each in waiting(store)] == [("acme", "crm"), ("beta", DEFAULT_INBOX)]
    store.inboxes.set_default_enabled("acme", True)
    assert waiting(store)[0] == Waiting("acme", DEFAULT_INBOX, NOW_MS - 90_000, 90)


def test_what_is_leased_delivered_or_expired_does_not_wait(store: SQLiteStore) -> None:
    create(store, "acme")
    put(store, "acme", RETENTION_SECONDS + 1)
    put(store, "acme", 50)
    store.events.claim("acme", DEFAULT_INBOX, EVERYTHING, NOW_MS)
    put(store, "acme", 40)
    store.events.claim("acme", DEFAULT_INBOX, EVERYTHING, NOW_MS, NOW_MS + 60_000)
    assert waiting(store) == []


def test_an_event_from_a_moment_ahead_is_new(store: SQLiteStore) -> None:
    create(store, "acme")
    put(store, "acme", -3)
    assert [each.age_seconds for each in waiting(store)] == [0]


def test_tenants_whose_keys_are_refused_do_not_count(store: SQLiteStore) -> None:
    create(store, "suspended", "deleted")
    put(store, "suspended", 50)
    put(store, "deleted", 50)
    registry = TenantService(store.tenants, lambda: NOW_MS)
    registry.set_status("suspended", "test", TenantStatus.SUSPENDED)
    registry.delete("deleted", "test")
    assert waiting(store) == []


def test_a_tenant_that_is_not_there_any_more_does_no_harm(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    create(store, "acme")
    put(store, "acme", 5)
    tenants = [named("vanished"), *store.tenants.all()]
    monkeypatch.setattr(type(store.tenants), "all", lambda _self: tenants)
    assert [each.tenant_id for each in waiting(store)] == ["acme"]
