"""What a store promises about a tenant's audit trail: `TenantStore` in `inbox.store.port`."""

from inbox.domain.tenants import AuditAction, AuditEntry, Change
from inbox.store.interface import Store
from tests.contract.samples import NOW, change, changed, created, keep, tenant
from tests.engines.harnesses import Harness

ACME = tenant("acme", version=12)
TRAIL = [AuditEntry(number, NOW + number, f"key_{number}", AuditAction.UPDATED, {}) for number in range(1, 13)]


def test_a_trail_is_kept(harness: Harness) -> None:
    changes = {
        "organization_name": Change(None, "Acmé"),
        "email": Change("ops@acme.example", None),
        "status": Change("REGISTERED", "SUSPENDED"),
        "rate_limit": Change(5, 0),
        "destination_email": Change("", "7"),
        "active": Change(True, False),
    }
    # All of one moment: they come by their numbers.
    kinds = [(action, forced) for action in AuditAction for forced in (False, True)]
    trail = [
        AuditEntry(number, NOW, "key_1", action, changes, forced) for number, (action, forced) in enumerate(kinds, 1)
    ]
    harness.store.tenants.create(tenant("acme", version=len(trail)), trail)
    harness.reopen()

    kept = harness.store.tenants.audit_log("acme", 99, None)
    assert kept == trail[::-1]
    assert kept[0].changes["active"].after is False


def test_a_change_makes_the_trail_longer(store: Store) -> None:
    store.tenants.create(ACME, TRAIL)
    further = [
        AuditEntry(13, NOW + 13, "key_1", AuditAction.UPDATED, {"rate_limit": Change(None, 5)}),
        AuditEntry(14, NOW + 13, "key_1", AuditAction.DELETED, {}, forced=True),
    ]

    assert store.tenants.update(changed(changed(ACME), active=False), 12, further) is True
    assert store.tenants.audit_log("acme", 99, None) == (TRAIL + further)[::-1]


def test_a_trail_is_read_in_pages_the_newest_first(store: Store) -> None:
    store.tenants.create(ACME, TRAIL)

    assert store.tenants.audit_log("acme", 5, None) == TRAIL[11:6:-1]
    assert store.tenants.audit_log("acme", 5, 8) == TRAIL[6:1:-1]
    assert store.tenants.audit_log("acme", 5, 3) == TRAIL[1::-1]
    assert store.tenants.audit_log("acme", 5, 1) == []


def test_a_trail_is_the_tenants_own(store: Store) -> None:
    store.tenants.create(ACME, TRAIL)
    namesake = tenant("acme-1", at_ms=NOW + 1)
    keep(store, namesake)

    assert store.tenants.audit_log("acme-1", 99, None) == created(namesake)
    assert store.tenants.audit_log("acme-", 99, None) == []
    assert len(store.tenants.audit_log("acme", 99, None)) == 12


def test_a_deleted_tenant_keeps_its_trail(store: Store) -> None:
    keep(store, tenant("acme"))
    change(store, tenant("acme"), active=False)

    assert [entry.number for entry in store.tenants.audit_log("acme", 9, None)] == [2, 1]
