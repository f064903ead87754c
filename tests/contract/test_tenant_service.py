"""Operations of the tenant service that make several calls of the store."""

import pytest

from inbox.domain.tenants import AuditAction, Change, TenantStatus
from inbox.services.tenants import TenantService
from tests.contract.samples import NOW, create_tenants, run_concurrently
from tests.contract.samples import tenant as named
from tests.engines.harnesses import Harness

WORKERS = 8


def open_tenant_service(harness: Harness) -> TenantService:
    return TenantService(harness.another().tenants, lambda: NOW)


def test_concurrent_find_or_create_creates_one_tenant(harness: Harness) -> None:
    services = [open_tenant_service(harness) for _ in range(WORKERS)]

    def race(number: int) -> None:
        def create(worker: int) -> tuple[str, bool]:
            # Every other call passes a tenant ID. In the last race, all calls pass the same one.
            email = f"ops{number}@acme.example"
            requested = {"tenant_id": f"acme-{number}-{worker}"} if worker % 2 else {}
            requested = {"tenant_id": f"acme-{number}"} if number == 2 else requested
            tenant, new = services[worker].find_or_create(
                f"admin {worker}", email.upper() if worker % 3 else email, **requested
            )
            return tenant.tenant_id, new

        created = run_concurrently(WORKERS, create)
        assert len({tenant_id for tenant_id, _ in created}) == 1
        assert [new for _, new in created].count(True) == 1

    for number in range(3):
        race(number)
    assert len(harness.store.tenants.all()) == 3
    for tenant in harness.store.tenants.all():
        assert len(harness.store.tenants.audit_log(tenant.tenant_id, 10, None)) == 1


def test_concurrent_updates_of_a_tenant_all_succeed(harness: Harness) -> None:
    open_tenant_service(harness).create("admin", "acme", status=TenantStatus.REGISTERED)
    services = [open_tenant_service(harness) for _ in range(4)]
    members = ({"organization_name": "Acme"}, {"email": "a@b.example"}, {"rate_limit": 7}, {"destination_email": "c@d"})

    run_concurrently(4, lambda number: services[number].update("acme", f"admin {number}", **members[number]))
    tenant = services[0].get("acme")
    assert (tenant.organization_name, tenant.email, tenant.rate_limit, tenant.destination_email, tenant.version) == (
        "Acme",
        "a@b.example",
        7,
        "c@d",
        5,
    )
    entries, _ = services[0].audit("acme", 10)
    assert [entry.number for entry in entries] == [5, 4, 3, 2, 1]
    assert {entry.by for entry in entries[:-1]} == {f"admin {number}" for number in range(4)}


@pytest.mark.parametrize("status", [each for each in TenantStatus if each is not TenantStatus.SUSPENDED])
def test_resumed_tenant_has_its_former_status(harness: Harness, status: TenantStatus) -> None:
    service = open_tenant_service(harness)
    service.create("admin", "acme", status=status)
    for _ in range(2):
        suspended = service.set_status("acme", "admin", TenantStatus.SUSPENDED)
        assert (suspended.status, suspended.has_access) == (TenantStatus.SUSPENDED, False)
        service.update("acme", "admin", rate_limit=suspended.version)

    resumed = service.resume("acme", "admin")
    assert (resumed.status, resumed.status_before_suspension) == (status, None)
    assert service.resume("acme", "admin") == resumed == service.get("acme")
    entries, _ = service.audit("acme", 10)
    assert [entry.changes for entry in entries if entry.action is AuditAction.STATUS_CHANGED] == [
        {"status": Change("SUSPENDED", status)},
        {"status": Change(status, "SUSPENDED")},
    ]
    assert not any(entry.forced for entry in entries)


def test_tenant_suspended_by_an_earlier_release_resumes_as_registered(harness: Harness) -> None:
    # Earlier releases did not store the status before the suspension.
    create_tenants(harness.store, named("acme", status=TenantStatus.SUSPENDED))

    assert open_tenant_service(harness).resume("acme", "admin").status is TenantStatus.REGISTERED
