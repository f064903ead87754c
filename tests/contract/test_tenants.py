"""Creating and updating tenants."""

from dataclasses import replace

import pytest

from inbox.domain.tenants import TenantStatus
from inbox.errors import EmailTaken, NotAllowed, NotFound, TenantExists
from inbox.store.interface import Store
from tests.contract.samples import (
    NOW,
    create_tenants,
    creation_entries,
    next_version,
    tenant,
    update_entries,
    update_tenant,
)
from tests.engines.harnesses import Harness

ACME = tenant(
    "acme",
    organization_name="Acme Corp.",
    email="Ops@acme.example",
    destination_email="inbox@acme.example",
    rate_limit=25,
    status=TenantStatus.UNVALIDATED,
)


def test_tenant_survives_a_restart(harness: Harness) -> None:
    bare = tenant("globex", active=False)
    create_tenants(harness.store, ACME, bare)
    harness.reopen()

    assert harness.store.tenants.get("acme") == ACME
    assert harness.store.tenants.get("globex") == bare
    assert harness.store.tenants.get("initech") is None


def test_all_lists_every_tenant_by_id(store: Store) -> None:
    tenants = [tenant("Zulu"), ACME, tenant("globex", active=False, at_ms=NOW - 1), tenant("zulu", at_ms=NOW + 1)]
    create_tenants(store, *tenants[::-1])

    assert store.tenants.all() == tenants


def test_tenant_id_is_unique(store: Store) -> None:
    create_tenants(store, ACME)
    with pytest.raises(TenantExists):
        create_tenants(store, tenant("acme", email="other@acme.example"))

    assert store.tenants.get("acme") == ACME
    assert store.tenants.audit_log("acme", 9, None) == creation_entries(ACME)
    assert store.tenants.get_by_email("other@acme.example") is None
    create_tenants(store, tenant("globex", email="other@acme.example"))


@pytest.mark.parametrize(
    ("email", "again"),
    [
        ("ops@acme.example", "ops@acme.example"),
        ("Ops@acme.example", "OPS@Acme.Example"),
        ("ÉMILE@acme.example", "émile@ACME.example"),
    ],
)
def test_email_is_unique_without_case(store: Store, email: str, again: str) -> None:
    acme = tenant("acme", email=email)
    create_tenants(store, acme)
    with pytest.raises(EmailTaken):
        create_tenants(store, tenant("globex", email=again))

    assert store.tenants.get_by_email(again) == acme
    assert store.tenants.get("globex") is None
    assert store.tenants.audit_log("globex", 9, None) == []
    assert store.tenants.all() == [acme]


def test_taken_id_is_reported_before_a_taken_email(store: Store) -> None:
    create_tenants(store, ACME, tenant("globex", email="ops@globex.example"))

    for email in (ACME.email, "ops@globex.example"):
        with pytest.raises(TenantExists):
            create_tenants(store, tenant("acme", email=email))


def test_tenant_is_found_by_its_email(harness: Harness) -> None:
    create_tenants(harness.store, ACME)
    harness.reopen()

    assert harness.store.tenants.get_by_email("ops@ACME.example") == ACME
    assert harness.store.tenants.get_by_email("inbox@acme.example") is None
    assert harness.store.tenants.get_by_email("ops@acme.exampl") is None


def test_deleted_tenant_keeps_its_email(store: Store) -> None:
    create_tenants(store, ACME)
    deleted = update_tenant(store, ACME, active=False)

    assert store.tenants.get_by_email("ops@acme.example") == deleted
    with pytest.raises(EmailTaken):
        create_tenants(store, tenant("globex", email="ops@acme.example"))


def test_update_replaces_the_earlier_version(harness: Harness) -> None:
    create_tenants(harness.store, ACME, tenant("globex"))
    after = next_version(
        ACME,
        organization_name=None,
        email="acme@acme.example",
        destination_email=None,
        rate_limit=0,
        status=TenantStatus.SUSPENDED,
        active=False,
        updated_by="key_other",
    )

    assert harness.store.tenants.update(after, 1, update_entries(after)) is True
    harness.reopen()
    assert harness.store.tenants.get("acme") == after
    assert harness.store.tenants.all() == [after, tenant("globex")]


def test_status_before_suspension_is_stored_and_removed(harness: Harness) -> None:
    create_tenants(harness.store, ACME)
    suspended = update_tenant(
        harness.store, ACME, status=TenantStatus.SUSPENDED, status_before_suspension=TenantStatus.UNVALIDATED
    )
    harness.reopen()
    assert harness.store.tenants.get("acme") == suspended
    assert harness.store.tenants.all() == [suspended]

    resumed = update_tenant(harness.store, suspended, status=TenantStatus.UNVALIDATED, status_before_suspension=None)
    harness.reopen()
    assert harness.store.tenants.get("acme") == resumed


def test_update_can_set_missing_members(store: Store) -> None:
    create_tenants(store, tenant("acme"))
    after = update_tenant(
        store,
        tenant("acme"),
        organization_name="Acme",
        email="ops@acme.example",
        destination_email="inbox@acme.example",
        rate_limit=5,
    )

    assert store.tenants.get("acme") == after
    assert store.tenants.get_by_email("OPS@acme.example") == after


@pytest.mark.parametrize("version", [1, 3, 4])
def test_update_of_another_version_changes_nothing(store: Store, version: int) -> None:
    create_tenants(store, ACME)
    second = update_tenant(store, ACME, rate_limit=1)
    late = replace(second, rate_limit=2, email="late@acme.example", version=version + 1)

    assert store.tenants.update(late, version, update_entries(replace(late, version=9))) is False
    assert store.tenants.get("acme") == second
    assert store.tenants.get_by_email("late@acme.example") is None
    assert store.tenants.get_by_email("ops@acme.example") == second
    assert store.tenants.audit_log("acme", 9, None) == update_entries(second) + creation_entries(ACME)
    create_tenants(store, tenant("globex", email="late@acme.example"))


def test_update_of_an_unknown_tenant_changes_nothing(store: Store) -> None:
    after = next_version(ACME)

    assert store.tenants.update(after, 1, update_entries(after)) is False
    assert store.tenants.get("acme") is None
    assert store.tenants.get_by_email("ops@acme.example") is None
    assert store.tenants.audit_log("acme", 9, None) == []


def test_changed_email_frees_the_old_one(store: Store) -> None:
    create_tenants(store, ACME)
    with_new_email = update_tenant(store, ACME, email="new@acme.example")

    assert store.tenants.get_by_email("ops@acme.example") is None
    assert store.tenants.get_by_email("new@acme.example") == with_new_email
    with pytest.raises(EmailTaken):
        create_tenants(store, tenant("globex", email="NEW@acme.example"))
    globex = tenant("globex", email="ops@acme.example")
    create_tenants(store, globex)
    assert store.tenants.get_by_email("Ops@acme.example") == globex


def test_removed_email_is_free(store: Store) -> None:
    create_tenants(store, ACME, tenant("globex"))
    bare = update_tenant(store, ACME, email=None)

    assert store.tenants.get("acme") == bare
    assert store.tenants.get_by_email("ops@acme.example") is None
    globex = update_tenant(store, tenant("globex"), email="ops@acme.example")
    assert store.tenants.get_by_email("ops@acme.example") == globex


def test_update_cannot_take_the_email_of_another_tenant(store: Store) -> None:
    globex = tenant("globex", email="ops@globex.example")
    create_tenants(store, ACME, globex)
    with_taken_email = next_version(globex, email="OPS@acme.example")

    with pytest.raises(EmailTaken):
        store.tenants.update(with_taken_email, 1, update_entries(with_taken_email))
    assert store.tenants.get("globex") == globex
    assert store.tenants.audit_log("globex", 9, None) == creation_entries(globex)
    assert store.tenants.get_by_email("ops@globex.example") == globex
    assert store.tenants.get_by_email("ops@acme.example") == ACME


def test_tenant_can_change_the_case_of_its_email(store: Store) -> None:
    create_tenants(store, ACME)
    with_uppercase_email = update_tenant(store, ACME, email="OPS@ACME.EXAMPLE")
    unchanged = update_tenant(store, with_uppercase_email, rate_limit=1)

    assert store.tenants.get_by_email("ops@acme.example") == unchanged
    with pytest.raises(EmailTaken):
        create_tenants(store, tenant("globex", email="ops@acme.example"))


def test_unknown_tenant_cannot_be_sharded(store: Store) -> None:
    with pytest.raises((NotFound, NotAllowed)):
        store.tenants.shard("acme", 2, NOW)

    assert store.tenants.get("acme") is None


def test_check_passes(store: Store) -> None:
    store.check()
