"""Migration and indexes of tenants and keys. `inbox.store.sqlite.tenants` and `.keys`."""

from pathlib import Path

import apsw
import pytest

from inbox.domain.keys import ApiKey, KeyStatus, Scope
from inbox.domain.tenants import AuditAction, AuditEntry, Tenant, TenantSelection, TenantStatus
from inbox.errors import EmailTaken
from inbox.store.sqlite import SQLiteStore, tenants
from tests.contract.samples import NOW, next_version, tenant, update_entries, update_tenant
from tests.unit.databases import create_older, explain


@pytest.fixture
def earlier_release(store_path: Path) -> None:
    create_older(store_path, 3)
    old = apsw.Connection(str(store_path))
    old.pragma("foreign_keys", 1)
    old.executemany(
        "INSERT INTO tenants (tenant_id, name, email, status, created_at_ms) VALUES (?, ?, ?, ?, ?)",
        [
            ("acme", "Acme Corp.", "Ops@ACME.example", "active", NOW + 1),
            ("emile", "Émile", "ÉMILE@acme.example", "active", NOW),
            ("first", "First", "ops@acme.example", "suspended", NOW),
            ("second", "Second", "ops@acme.example", "active", NOW),
            ("nameless", "nameless", None, "active", NOW),
            ("other", "other", None, "active", NOW),
        ],
    )
    old.executemany(
        """
        INSERT INTO api_keys (key_hash, key_id, tenant_id, name, scopes, status, created_at_ms, expires_at_ms)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
        [
            ("aa" * 32, "key_1", "acme", "zapier", "events:write inbox:read", "active", NOW, NOW + 5),
            ("bb" * 32, "key_2", "acme", "", "", "revoked", NOW + 1, None),
            ("cc" * 32, "key_3", "first", "", "inbox:read", "active", NOW, None),
        ],
    )
    old.close()


def make_migrated(tenant_id: str, at_ms: int = NOW, **members: object) -> Tenant:
    return tenant(tenant_id, at_ms, updated_by="migration", **members)


ACME = make_migrated("acme", NOW + 1, organization_name="Acme Corp.", email="Ops@ACME.example")
FIRST = make_migrated("first", organization_name="First", email="ops@acme.example", status=TenantStatus.SUSPENDED)


@pytest.mark.usefixtures("earlier_release")
def test_tenants_of_an_earlier_release_are_migrated(store: SQLiteStore) -> None:
    assert store.tenants.all() == [
        ACME,
        make_migrated("emile", organization_name="Émile", email="ÉMILE@acme.example"),
        FIRST,
        make_migrated("nameless"),
        make_migrated("other"),
        make_migrated("second", organization_name="Second", email="ops@acme.example"),
    ]
    for each in store.tenants.all():
        entry = AuditEntry(1, each.created_at_ms, "migration", AuditAction.CREATED, {})
        assert store.tenants.audit_log(each.tenant_id, 9, None) == [entry]


@pytest.mark.usefixtures("earlier_release")
def test_keys_of_an_earlier_release_still_work(store: SQLiteStore) -> None:
    both = frozenset({Scope.EVENTS_WRITE, Scope.INBOX_READ})
    assert store.keys.all("acme") == [
        ApiKey("key_1", "aa" * 32, "acme", "zapier", both, KeyStatus.ACTIVE, NOW, NOW + 5, 5),
        ApiKey("key_2", "bb" * 32, "acme", "", frozenset(), KeyStatus.REVOKED, NOW + 1, None),
    ]
    records = [store.keys.get_by_hash(key_hash * 32) for key_hash in ("aa", "bb", "cc")]
    assert [record and record.principal.tenant_active for record in records] == [True, None, False]


@pytest.mark.usefixtures("earlier_release")
def test_email_shared_in_an_earlier_release_belongs_to_the_oldest_tenant(store: SQLiteStore) -> None:
    assert store.tenants.get_by_email("OPS@acme.example") == FIRST
    emile = store.tenants.get_by_email("émile@acme.example")
    assert emile is not None
    assert emile.tenant_id == "emile"


@pytest.mark.usefixtures("earlier_release")
def test_tenant_keeps_a_shared_email_and_owns_it_once_it_is_free(store: SQLiteStore) -> None:
    renamed = update_tenant(store, ACME, organization_name="Globex")
    assert store.tenants.get("acme") == renamed
    assert store.tenants.get_by_email("ops@acme.example") == FIRST
    with_uppercase_email = next_version(renamed, email="OPS@acme.example")
    with pytest.raises(EmailTaken):
        store.tenants.update(with_uppercase_email, renamed.version, update_entries(with_uppercase_email))

    update_tenant(store, FIRST, email=None)
    owner = update_tenant(store, renamed, rate_limit=1)
    assert store.tenants.get_by_email("ops@acme.example") == owner


@pytest.mark.usefixtures("earlier_release")
def test_keys_still_refer_to_tenants_after_the_migration(store: SQLiteStore) -> None:
    read = store._database.read
    assert read("PRAGMA integrity_check") == [("ok",)]
    assert read("PRAGMA foreign_key_check") == []
    assert [row[2] for row in read("PRAGMA foreign_key_list(api_keys)")] == ["tenants"]
    with pytest.raises(apsw.ConstraintError):
        store._database.write(lambda connection: connection.execute("DELETE FROM tenants"))
    assert len(store.tenants.all()) == 6


@pytest.mark.parametrize("include_inactive", [False, True])
def test_pages_of_tenants_read_an_index_in_order(store: SQLiteStore, include_inactive: bool) -> None:
    range_condition = "created_at_ms>? AND (created_at_ms,tenant_id)<(?,?)"
    status_index = f"tenants_by_status (status=? AND {range_condition})"
    for status, index in ((None, f"tenants_by_age ({range_condition})"), (TenantStatus.SUSPENDED, status_index)):
        selection = TenantSelection(status, include_inactive=include_inactive)
        plan = explain(store, tenants.page_statement(selection), tenants.page_parameters(selection, 9, None))
        assert plan == [f"SEARCH tenants USING INDEX {index}"]


def test_tenant_is_found_by_email_in_an_index(store: SQLiteStore) -> None:
    (step,) = explain(store, tenants._BY_EMAIL, ("ops@acme.example",))
    assert step.startswith("SEARCH tenants USING INDEX")
    assert step.endswith("(email_key=?)")


def test_audit_log_is_read_from_its_end(store: SQLiteStore) -> None:
    plan = explain(store, tenants.AUDIT_LOG, {"tenant_id": "acme", "before": 9, "limit": 9})
    assert plan == ["SEARCH tenant_audit USING PRIMARY KEY (tenant_id=? AND number<?)"]
