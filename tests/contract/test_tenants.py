"""What a store promises about tenants: `TenantStore` in `inbox.store.port`, but for pages, trails and races."""

from dataclasses import replace

import pytest

from inbox.domain.tenants import TenantStatus
from inbox.errors import EmailTaken, NotAllowed, NotFound, TenantExists
from inbox.store.interface import Store
from tests.contract.samples import NOW, change, changed, created, keep, tenant, updated
from tests.engines.harnesses import Harness

ACME = tenant(
    "acme",
    organization_name="Acme Corp.",
    email="Ops@acme.example",
    destination_email="inbox@acme.example",
    rate_limit=25,
    status=TenantStatus.UNVALIDATED,
)


def test_a_tenant_is_kept(harness: Harness) -> None:
    bare = tenant("globex", active=False)
    keep(harness.store, ACME, bare)
    harness.reopen()

    assert harness.store.tenants.get("acme") == ACME
    assert harness.store.tenants.get("globex") == bare
    assert harness.store.tenants.get("initech") is None


def test_every_tenant_is_listed_by_id_deleted_ones_too(store: Store) -> None:
    tenants = [tenant("Zulu"), ACME, tenant("globex", active=False, at_ms=NOW - 1), tenant("zulu", at_ms=NOW + 1)]
    keep(store, *tenants[::-1])

    assert store.tenants.all() == tenants


def test_a_tenant_id_is_taken_once(store: Store) -> None:
    keep(store, ACME)
    with pytest.raises(TenantExists):
        keep(store, tenant("acme", email="other@acme.example"))

    assert store.tenants.get("acme") == ACME
    assert store.tenants.audit_log("acme", 9, None) == created(ACME)


def test_the_email_of_a_tenant_that_was_refused_is_still_free(store: Store) -> None:
    keep(store, ACME)
    with pytest.raises(TenantExists):
        keep(store, tenant("acme", email="free@acme.example"))

    assert store.tenants.get_by_email("free@acme.example") is None
    keep(store, tenant("globex", email="free@acme.example"))


def test_ids_that_differ_in_case_are_two(store: Store) -> None:
    keep(store, tenant("acme"), tenant("ACME"))

    assert store.tenants.get("ACME") == tenant("ACME")


@pytest.mark.parametrize(
    ("email", "again"),
    [
        ("ops@acme.example", "ops@acme.example"),
        ("Ops@acme.example", "OPS@Acme.Example"),
        ("ÉMILE@acme.example", "émile@ACME.example"),
    ],
)
def test_an_email_is_taken_once_whatever_its_case(store: Store, email: str, again: str) -> None:
    acme = tenant("acme", email=email)
    keep(store, acme)
    with pytest.raises(EmailTaken):
        keep(store, tenant("globex", email=again))

    assert store.tenants.get_by_email(again) == acme
    assert store.tenants.get("globex") is None
    assert store.tenants.audit_log("globex", 9, None) == []
    assert store.tenants.all() == [acme]


def test_an_id_that_is_taken_is_told_before_an_email_that_is(store: Store) -> None:
    keep(store, ACME, tenant("globex", email="ops@globex.example"))

    for email in (ACME.email, "ops@globex.example"):
        with pytest.raises(TenantExists):
            keep(store, tenant("acme", email=email))


def test_many_tenants_may_have_no_email(store: Store) -> None:
    tenants = [tenant("acme"), tenant("globex"), tenant("initech")]
    keep(store, *tenants)

    assert store.tenants.all() == tenants


def test_a_tenant_is_found_by_its_email_as_it_wrote_it(harness: Harness) -> None:
    keep(harness.store, ACME)
    harness.reopen()

    assert harness.store.tenants.get_by_email("ops@ACME.example") == ACME
    assert harness.store.tenants.get_by_email("inbox@acme.example") is None
    assert harness.store.tenants.get_by_email("ops@acme.exampl") is None


def test_a_deleted_tenant_keeps_its_email(store: Store) -> None:
    keep(store, ACME)
    deleted = change(store, ACME, active=False)

    assert store.tenants.get_by_email("ops@acme.example") == deleted
    with pytest.raises(EmailTaken):
        keep(store, tenant("globex", email="ops@acme.example"))


def test_a_change_takes_the_place_of_the_earlier_version(harness: Harness) -> None:
    keep(harness.store, ACME, tenant("globex"))
    after = changed(
        ACME,
        organization_name=None,
        email="acme@acme.example",
        destination_email=None,
        rate_limit=0,
        status=TenantStatus.SUSPENDED,
        active=False,
        updated_by="key_other",
    )

    assert harness.store.tenants.update(after, 1, updated(after)) is True
    harness.reopen()
    assert harness.store.tenants.get("acme") == after
    assert harness.store.tenants.all() == [after, tenant("globex")]


def test_the_status_before_a_suspension_is_kept_and_removed(harness: Harness) -> None:
    keep(harness.store, ACME)
    suspended = change(
        harness.store, ACME, status=TenantStatus.SUSPENDED, status_before_suspension=TenantStatus.UNVALIDATED
    )
    harness.reopen()
    assert harness.store.tenants.get("acme") == suspended
    assert harness.store.tenants.all() == [suspended]

    resumed = change(harness.store, suspended, status=TenantStatus.UNVALIDATED, status_before_suspension=None)
    harness.reopen()
    assert harness.store.tenants.get("acme") == resumed


def test_a_member_that_was_missing_can_be_given(store: Store) -> None:
    keep(store, tenant("acme"))
    after = change(
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
def test_a_change_of_another_version_changes_nothing(store: Store, version: int) -> None:
    keep(store, ACME)
    second = change(store, ACME, rate_limit=1)
    late = replace(second, rate_limit=2, email="late@acme.example", version=version + 1)

    assert store.tenants.update(late, version, updated(replace(late, version=9))) is False
    assert store.tenants.get("acme") == second
    assert store.tenants.get_by_email("late@acme.example") is None
    assert store.tenants.get_by_email("ops@acme.example") == second
    assert store.tenants.audit_log("acme", 9, None) == updated(second) + created(ACME)
    keep(store, tenant("globex", email="late@acme.example"))


def test_a_tenant_that_is_not_there_is_not_changed(store: Store) -> None:
    after = changed(ACME)

    assert store.tenants.update(after, 1, updated(after)) is False
    assert store.tenants.get("acme") is None
    assert store.tenants.get_by_email("ops@acme.example") is None
    assert store.tenants.audit_log("acme", 9, None) == []


def test_an_email_that_was_given_up_is_anybodys_and_the_new_one_is_not(store: Store) -> None:
    keep(store, ACME)
    moved = change(store, ACME, email="new@acme.example")

    assert store.tenants.get_by_email("ops@acme.example") is None
    assert store.tenants.get_by_email("new@acme.example") == moved
    with pytest.raises(EmailTaken):
        keep(store, tenant("globex", email="NEW@acme.example"))
    globex = tenant("globex", email="ops@acme.example")
    keep(store, globex)
    assert store.tenants.get_by_email("Ops@acme.example") == globex


def test_an_email_that_was_taken_away_is_anybodys(store: Store) -> None:
    keep(store, ACME, tenant("globex"))
    bare = change(store, ACME, email=None)

    assert store.tenants.get("acme") == bare
    assert store.tenants.get_by_email("ops@acme.example") is None
    globex = change(store, tenant("globex"), email="ops@acme.example")
    assert store.tenants.get_by_email("ops@acme.example") == globex


def test_a_change_cannot_take_the_email_of_another(store: Store) -> None:
    globex = tenant("globex", email="ops@globex.example")
    keep(store, ACME, globex)
    greedy = changed(globex, email="OPS@acme.example")

    with pytest.raises(EmailTaken):
        store.tenants.update(greedy, 1, updated(greedy))
    assert store.tenants.get("globex") == globex
    assert store.tenants.audit_log("globex", 9, None) == created(globex)
    assert store.tenants.get_by_email("ops@globex.example") == globex
    assert store.tenants.get_by_email("ops@acme.example") == ACME


def test_a_tenant_may_write_its_own_email_in_another_case(store: Store) -> None:
    keep(store, ACME)
    louder = change(store, ACME, email="OPS@ACME.EXAMPLE")
    unchanged = change(store, louder, rate_limit=1)

    assert store.tenants.get_by_email("ops@acme.example") == unchanged
    with pytest.raises(EmailTaken):
        keep(store, tenant("globex", email="ops@acme.example"))


def test_a_tenant_that_is_not_there_is_not_spread(store: Store) -> None:
    with pytest.raises((NotFound, NotAllowed)):
        store.tenants.shard("acme", 2, NOW)

    assert store.tenants.get("acme") is None


def test_the_check_passes_on_a_store_that_works(store: Store) -> None:
    store.check()
