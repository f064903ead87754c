"""inbox tenants and inbox keys."""

import json
from typing import Any

import pytest

from authorizer import apikey
from inbox.services.tenants import TenantService
from tests.service import Service


def test_tenants_are_created_and_listed(service: Service) -> None:
    created = service.invoke("tenants", "create", "acme", "--name", "Acme Corp.", "--email", "ops@acme.example")
    assert (created.returncode, created.stdout) == (0, "acme\n")
    row = json.loads(service.invoke("tenants", "list", "--json").stdout)
    assert row["date_created"].endswith("Z")
    assert row | {"date_created": ""} == {
        "tenant_id": "acme",
        "organization_name": "Acme Corp.",
        "email": "ops@acme.example",
        "status": "REGISTERED",
        "active": True,
        "date_created": "",
    }
    table = service.invoke("tenants", "list").stdout.splitlines()
    assert table[0].split() == ["tenant_id", "organization_name", "email", "status", "active", "date_created"]
    assert table[1].startswith("acme  ")
    assert table[1].split()[-2] == "yes"


def test_key_is_printed_once_and_never_listed(service: Service) -> None:
    service.invoke("tenants", "create", "acme")
    created = service.invoke("keys", "create", "acme", "--name", "zap", "--scope", "inbox:read", "--expires-in", "90d")
    key = created.stdout.removesuffix("\n")
    assert apikey.is_well_formed(key)

    listed = service.invoke("keys", "list", "acme", "--json").stdout
    row = json.loads(listed)
    assert (row["name"], row["scopes"], row["status"]) == ("zap", ["inbox:read"], "active")
    assert row["expires_at"] > row["created_at"]
    assert key not in listed + service.invoke("keys", "list", "acme").stdout
    for file in service.folder.iterdir():
        assert key.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    ("tenant_id", "requested", "scopes"),
    [
        ("acme", [], ["events:write", "inbox:read"]),
        ("acme", ["all"], ["events:read", "events:write", "inbox:read", "tenant:manage"]),
        ("acme", ["events:read"], ["events:read"]),
        ("acme", ["inbox:read", "all"], ["events:read", "events:write", "inbox:read", "tenant:manage"]),
        ("system", ["all"], ["events:read", "events:write", "inbox:read", "tenant:manage"]),
        ("system", ["all", "admin"], ["admin", "events:read", "events:write", "inbox:read", "tenant:manage"]),
    ],
)
def test_key_has_the_requested_scopes(
    service: Service, tenant_id: str, requested: list[str], scopes: list[str]
) -> None:
    service.create_key(tenant_id, *[word for scope in requested for word in ("--scope", scope)])
    assert json.loads(service.invoke("keys", "list", tenant_id, "--json").stdout)["scopes"] == scopes


def test_revoked_key_is_listed_as_revoked(service_on_each_engine: Service) -> None:
    service = service_on_each_engine
    service.create_key("acme")
    key_id = json.loads(service.invoke("keys", "list", "acme", "--json").stdout)["key_id"]
    assert service.invoke("keys", "revoke", key_id).returncode == 0
    assert json.loads(service.invoke("keys", "list", "acme", "--json").stdout)["status"] == "revoked"


def show_tenant(service: Service) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(service.invoke("tenants", "show", "acme").stdout)
    return shown


def test_tenant_is_suspended_resumed_deleted_and_restored(service_on_each_engine: Service) -> None:
    service = service_on_each_engine
    service.invoke("tenants", "create", "acme")
    for command, status, active in (
        ("suspend", "SUSPENDED", True),
        ("resume", "REGISTERED", True),
        ("delete", "REGISTERED", False),
        ("restore", "REGISTERED", True),
    ):
        done = service.invoke("tenants", command, "acme")
        assert (done.returncode, done.stdout) == (0, "")
        shown = show_tenant(service)
        assert (shown["status"], shown["active"]) == (status, active)
    entries = [json.loads(line) for line in service.invoke("tenants", "audit", "acme", "--json").stdout.splitlines()]
    assert [entry["action"] for entry in entries] == [
        "restored",
        "deleted",
        "status_changed",
        "status_changed",
        "created",
    ]
    assert {entry["by"] for entry in entries} == {"cli"}
    table = service.invoke("tenants", "audit", "acme").stdout
    assert "status: REGISTERED → SUSPENDED" in table
    assert "status: - → REGISTERED" in table


def test_unvalidated_tenant_is_suspended_and_resumed(service: Service) -> None:
    with service.open_store() as store:
        TenantService(store.tenants, store.now_ms).create("test", "acme")
    for command, status in (("suspend", "SUSPENDED"), ("resume", "UNVALIDATED"), ("resume", "UNVALIDATED")):
        done = service.invoke("tenants", command, "acme")
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == f"Tenant acme is {status}. Takes effect within INBOX_KEY_CACHE_SECONDS seconds.\n"
        assert show_tenant(service)["status"] == status


def test_resumed_tenant_that_is_deleted_stays_deleted(service: Service) -> None:
    service.invoke("tenants", "create", "acme")
    service.invoke("tenants", "suspend", "acme")
    deleted = service.invoke("tenants", "delete", "acme")
    assert deleted.stderr == "Tenant acme deleted. `inbox tenants restore acme` restores it.\n"
    resumed = service.invoke("tenants", "resume", "acme")
    hint = "It is still deleted. `inbox tenants restore acme` restores it."
    assert (resumed.returncode, resumed.stderr) == (0, f"Tenant acme is REGISTERED. {hint}\n")
    assert not show_tenant(service)["active"]
    restored = service.invoke("tenants", "restore", "acme")
    assert restored.stderr == "Tenant acme restored. Status: REGISTERED.\n"


def test_changes_of_an_audit_entry_are_separated_by_commas(service: Service) -> None:
    service.invoke("tenants", "create", "acme")
    updated = service.invoke("tenants", "update", "acme", "--name", "Acme", "--rate-limit", "7")
    assert updated.stderr == "Tenant acme updated.\n"
    last = service.invoke("tenants", "audit", "acme").stdout.splitlines()[1]
    assert " no " in last
    assert last.endswith("organization_name: - → Acme, rate_limit: - → 7")


def test_tenant_is_updated(service_on_each_engine: Service) -> None:
    service = service_on_each_engine
    service.invoke("tenants", "create", "acme", "--name", "Acme")
    service.invoke("tenants", "update", "acme", "--email", "a@b.example", "--rate-limit", "7")
    service.invoke("tenants", "update", "acme", "--destination-email", "c@d.example")
    shown = show_tenant(service)
    assert (shown["organization_name"], shown["email"], shown["destination_email"], shown["rate_limit"]) == (
        "Acme",
        "a@b.example",
        "c@d.example",
        7,
    )


def test_rotated_key_is_printed_alone_and_both_work(service_on_each_engine: Service) -> None:
    service = service_on_each_engine
    old = service.create_key("acme")
    key_id = json.loads(service.invoke("keys", "list", "acme", "--json").stdout)["key_id"]
    rotated = service.invoke("keys", "rotate", key_id)
    new = rotated.stdout.removesuffix("\n")
    assert apikey.is_well_formed(new)
    assert new not in rotated.stderr
    old_key = json.loads(service.invoke("keys", "list", "acme", "--json").stdout.splitlines()[0])
    assert old_key["key_id"] == key_id
    assert rotated.stderr.endswith(f" replaces {key_id}, which is valid until {old_key['expires_at']}.\n")
    service.start()
    for key in (old, new):
        assert service.invoke("poll", "--peek", "--key", key).returncode == 0
    ended = service.invoke("keys", "rotate", key_id, "--overlap", "0s")
    assert ended.returncode == 0
    assert ended.stderr.endswith(f" replaces {key_id}, which is no longer valid.\n")
    rows = [json.loads(line) for line in service.invoke("keys", "list", "acme", "--json").stdout.splitlines()]
    assert {row["key_id"]: row["status"] for row in rows}[key_id] == "expired"
    assert len(rows) == 3
