"""The audit log of a tenant."""

from inbox.domain.tenants import AuditAction, AuditEntry, Change
from inbox.store.interface import Store
from tests.contract.samples import NOW, create_tenants, creation_entries, next_version, tenant
from tests.engines.harnesses import Harness

ACME = tenant("acme", version=12)
ENTRIES = [AuditEntry(number, NOW + number, f"key_{number}", AuditAction.UPDATED, {}) for number in range(1, 13)]


def test_audit_log_survives_a_restart(harness: Harness) -> None:
    changes = {
        "organization_name": Change(None, "Acmé"),
        "email": Change("ops@acme.example", None),
        "status": Change("REGISTERED", "SUSPENDED"),
        "rate_limit": Change(5, 0),
        "destination_email": Change("", "7"),
        "active": Change(True, False),
    }
    # All entries have the same time, so that only their numbers order them.
    kinds = [(action, forced) for action in AuditAction for forced in (False, True)]
    entries = [
        AuditEntry(number, NOW, "key_1", action, changes, forced) for number, (action, forced) in enumerate(kinds, 1)
    ]
    harness.store.tenants.create(tenant("acme", version=len(entries)), entries)
    harness.reopen()

    kept = harness.store.tenants.audit_log("acme", 99, None)
    assert kept == entries[::-1]
    assert kept[0].changes["active"].after is False


def test_update_appends_to_the_audit_log(store: Store) -> None:
    store.tenants.create(ACME, ENTRIES)
    further = [
        AuditEntry(13, NOW + 13, "key_1", AuditAction.UPDATED, {"rate_limit": Change(None, 5)}),
        AuditEntry(14, NOW + 13, "key_1", AuditAction.DELETED, {}, forced=True),
    ]

    assert store.tenants.update(next_version(next_version(ACME), active=False), 12, further) is True
    assert store.tenants.audit_log("acme", 99, None) == (ENTRIES + further)[::-1]


def test_audit_log_has_pages_newest_first(store: Store) -> None:
    store.tenants.create(ACME, ENTRIES)

    assert store.tenants.audit_log("acme", 5, None) == ENTRIES[11:6:-1]
    assert store.tenants.audit_log("acme", 5, 8) == ENTRIES[6:1:-1]
    assert store.tenants.audit_log("acme", 5, 3) == ENTRIES[1::-1]
    assert store.tenants.audit_log("acme", 5, 1) == []


def test_audit_log_belongs_to_one_tenant(store: Store) -> None:
    store.tenants.create(ACME, ENTRIES)
    same_prefix = tenant("acme-1", at_ms=NOW + 1)
    create_tenants(store, same_prefix)

    assert store.tenants.audit_log("acme-1", 99, None) == creation_entries(same_prefix)
    assert store.tenants.audit_log("acme-", 99, None) == []
    assert len(store.tenants.audit_log("acme", 99, None)) == 12
