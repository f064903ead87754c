"""/admin/tenants: tenants, their status, their audit log and their first keys."""

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from inbox.domain.tenants import TenantStatus
from tests.api.conftest import ApiClient, Clock, TenantFactory, problem
from tests.api.routes import ROUTES, create_sample

OPS_EMAIL = "Ops@Acme.example"


def create(admin: ApiClient, email: str = OPS_EMAIL, **members: Any) -> dict[str, Any]:
    response = admin.post("/admin/tenants", json={"email": email} | members)
    assert response.status_code == 201, response.text
    tenant: dict[str, Any] = response.get_json()
    return tenant


def get_audit_log(admin: ApiClient, tenant_id: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = admin.get(f"/admin/tenants/{tenant_id}/audit").get_json()
    return entries


def set_status(admin: ApiClient, status: str, **members: bool) -> TestResponse:
    return admin.put("/admin/tenants/acme/status", json={"status": status} | members)


def tenant_ids(document: dict[str, Any]) -> list[str]:
    return [tenant["tenant_id"] for tenant in document["tenants"]]


def get_admin_key_id(tenant_factory: TenantFactory) -> str:
    return tenant_factory.key_service.list("system")[0].key_id


def test_created_tenant_is_unvalidated_and_active(admin: ApiClient, tenant_factory: TenantFactory) -> None:
    response = admin.post(
        "/admin/tenants", json={"email": OPS_EMAIL, "organization_name": "Acme Corp.", "rate_limit": 5}
    )
    tenant = response.get_json()

    assert response.status_code == 201
    assert response.headers["Location"] == f"/admin/tenants/{tenant['tenant_id']}"
    assert tenant["date_created"] == tenant["date_last_updated"]
    assert {name: value for name, value in tenant.items() if not name.startswith("date_")} == {
        "tenant_id": tenant["tenant_id"],
        "organization_name": "Acme Corp.",
        "email": OPS_EMAIL,
        "destination_email": None,
        "rate_limit": 5,
        "status": "UNVALIDATED",
        "active": True,
        "last_updated_by": get_admin_key_id(tenant_factory),
    }
    assert admin.get(response.headers["Location"]).get_json() == tenant


def test_known_email_address_returns_its_tenant_ignoring_case(admin: ApiClient) -> None:
    first = create(admin, tenant_id="acme")
    response = admin.post("/admin/tenants", json={"email": OPS_EMAIL.lower(), "organization_name": "Another name"})

    assert (response.status_code, response.get_json()) == (200, first)
    assert "Location" not in response.headers
    # A deleted tenant keeps its email address.
    admin.delete("/admin/tenants/acme")
    again = admin.post("/admin/tenants", json={"email": OPS_EMAIL})
    assert (again.status_code, again.get_json()["active"]) == (200, False)


def test_existing_tenant_id_is_a_conflict(admin: ApiClient) -> None:
    create(admin, tenant_id="acme")
    response = admin.post("/admin/tenants", json={"email": "other@acme.example", "tenant_id": "acme"})
    assert problem(response) == (409, "already-exists")


def test_patch_changes_only_the_given_members(admin: ApiClient, clock: Clock) -> None:
    before = create(admin, tenant_id="acme", organization_name="Acme", rate_limit=5)
    clock.advance(60)
    response = admin.patch(
        "/admin/tenants/acme", json={"organization_name": None, "destination_email": "in@acme.example", "rate_limit": 0}
    )

    changed = {"organization_name": None, "destination_email": "in@acme.example", "rate_limit": 0}
    assert response.status_code == 200
    assert response.get_json() == before | changed | {"date_last_updated": response.get_json()["date_last_updated"]}
    assert response.get_json()["date_last_updated"] > before["date_last_updated"]
    [entry, _] = get_audit_log(admin, "acme")
    assert entry["action"] == "updated"
    assert entry["changes"] == {
        "organization_name": {"from": "Acme", "to": None},
        "destination_email": {"from": None, "to": "in@acme.example"},
        "rate_limit": {"from": 5, "to": 0},
    }


def test_email_address_can_change_but_must_be_unique(admin: ApiClient) -> None:
    create(admin, tenant_id="acme")
    create(admin, "ops@globex.example", tenant_id="globex")

    response = admin.patch("/admin/tenants/globex", json={"email": OPS_EMAIL.upper()})
    assert problem(response) == (409, "email-taken")
    assert admin.patch("/admin/tenants/acme", json={"email": "new@acme.example"}).status_code == 200
    assert (
        admin.patch("/admin/tenants/globex", json={"email": OPS_EMAIL.upper()}).get_json()["email"] == OPS_EMAIL.upper()
    )


def test_only_allowed_status_transitions_are_made(admin: ApiClient) -> None:
    create(admin, tenant_id="acme")
    allowed = {
        TenantStatus.UNVALIDATED: [TenantStatus.VALIDATED, TenantStatus.SUSPENDED],
        TenantStatus.VALIDATED: [TenantStatus.REGISTERED, TenantStatus.SUSPENDED],
        TenantStatus.REGISTERED: [TenantStatus.SUSPENDED],
        TenantStatus.SUSPENDED: [TenantStatus.REGISTERED],
    }
    for status, requested in permutations(TenantStatus, 2):
        for forced in (TenantStatus.REGISTERED, status):
            set_status(admin, forced, force=True)
        response = set_status(admin, requested)
        if requested in allowed[status]:
            assert (response.status_code, response.get_json()["status"]) == (200, requested)
            assert get_audit_log(admin, "acme")[0]["forced"] is False
        else:
            assert problem(response) == (409, "wrong-step")
            assert response.get_json()["title"] == "Invalid status transition"
            assert response.get_json()["detail"] == (
                f"Cannot change status from {status} to {requested}. Allowed: {', '.join(allowed[status])}."
            )
            assert admin.get("/admin/tenants/acme").get_json()["status"] == status


@pytest.mark.parametrize("status", ["UNVALIDATED", "VALIDATED", "REGISTERED"])
def test_suspended_tenant_can_only_return_to_its_previous_status(admin: ApiClient, status: str) -> None:
    create(admin, tenant_id="acme")
    before = set_status(admin, status, force=True).get_json()
    assert "status_before_suspension" not in before
    response = set_status(admin, "SUSPENDED")

    assert (response.status_code, response.get_json()["status"]) == (200, "SUSPENDED")
    assert response.get_json()["status_before_suspension"] == status
    for other in {"UNVALIDATED", "VALIDATED", "REGISTERED"} - {status}:
        refused = set_status(admin, other)
        assert refused.status_code == 409
        assert refused.get_json()["detail"].endswith(f"Allowed: {status}.")
    resumed = set_status(admin, status)
    assert resumed.get_json() | {"date_last_updated": ""} == before | {"date_last_updated": ""}
    assert [entry["changes"] for entry in get_audit_log(admin, "acme")[:2]] == [
        {"status": {"from": "SUSPENDED", "to": status}},
        {"status": {"from": status, "to": "SUSPENDED"}},
    ]


def test_any_status_can_be_forced_and_the_audit_log_records_it(admin: ApiClient, tenant_factory: TenantFactory) -> None:
    create(admin, tenant_id="acme")
    response = set_status(admin, "REGISTERED", force=True)

    assert (response.status_code, response.get_json()["status"]) == (200, "REGISTERED")
    entry = get_audit_log(admin, "acme")[0]
    assert (entry["forced"], entry["by"]) == (True, get_admin_key_id(tenant_factory))
    assert entry["changes"] == {"status": {"from": "UNVALIDATED", "to": "REGISTERED"}}
    # A transition that is allowed anyway does not count as forced.
    set_status(admin, "SUSPENDED", force=True)
    assert get_audit_log(admin, "acme")[0]["forced"] is False


def test_setting_the_current_status_changes_nothing(admin: ApiClient) -> None:
    before = create(admin, tenant_id="acme")
    assert set_status(admin, "UNVALIDATED").get_json() == before
    assert admin.patch("/admin/tenants/acme", json={"email": OPS_EMAIL}).get_json() == before
    assert len(get_audit_log(admin, "acme")) == 1


def test_deleted_tenant_is_hidden_and_can_be_restored(admin: ApiClient) -> None:
    before = create(admin, tenant_id="acme")
    for _ in range(2):
        assert admin.delete("/admin/tenants/acme").status_code == 204
    assert admin.get("/admin/tenants/acme").get_json()["active"] is False
    assert "acme" not in tenant_ids(admin.get("/admin/tenants").get_json())
    assert "acme" in tenant_ids(admin.get("/admin/tenants?includeInactive=true").get_json())

    restored = admin.post("/admin/tenants/acme/restore")
    assert restored.status_code == 200
    assert restored.get_json() == before | {"date_last_updated": restored.get_json()["date_last_updated"]}
    assert [entry["action"] for entry in get_audit_log(admin, "acme")] == ["restored", "deleted", "created"]
    assert "acme" in tenant_ids(admin.get("/admin/tenants").get_json())


def test_tenant_system_cannot_be_deleted_or_suspended(admin: ApiClient) -> None:
    for response in (
        admin.delete("/admin/tenants/system"),
        admin.put("/admin/tenants/system/status", json={"status": "SUSPENDED", "force": True}),
    ):
        assert problem(response) == (409, "not-allowed")
    assert admin.get("/me").status_code == 200


def test_call_for_unknown_tenant_returns_404(tenant_factory: TenantFactory) -> None:
    sample = create_sample(tenant_factory)
    for route in ROUTES:
        for tenant_id in ("nobody", "n" * 3000, "no%23body"):
            if "<tenant_id>" in route[1]:
                other = replace(sample, values=sample.values | {"tenant_id": tenant_id})
                assert other.call_with_allowed_key(route).status_code == 404, route


def test_tenants_are_paged_newest_first(admin: ApiClient, clock: Clock) -> None:
    created = []
    for number in range(7):
        tenant = create(admin, f"{number}@acme.example")
        created.append((tenant["date_created"], tenant["tenant_id"]))
        clock.advance(number % 2)
    seen: list[str] = []
    path: str | None = "/admin/tenants?pageSize=3"
    while path:
        response = admin.get(path)
        document = response.get_json()
        seen += tenant_ids(document)
        assert document["moreAvailable"] == (document["startAt"] is not None) == ("Link" in response.headers)
        path = document["startAt"] and f"/admin/tenants?pageSize=3&startAt={document['startAt']}"
        assert path is None or response.headers["Link"] == f'<{path}>; rel="next"'
    assert seen.count("system") == 1
    # Of tenants created in the same millisecond, the greater ID comes first.
    assert [tenant_id for tenant_id in seen if tenant_id != "system"] == [
        tenant_id for _, tenant_id in sorted(created, reverse=True)
    ]


def test_page_has_50_tenants_by_default_and_up_to_100(admin: ApiClient) -> None:
    for number in range(101):
        create(admin, f"{number}@acme.example")
    for query, count in (("", 50), ("?pageSize=100", 100), ("?pageSize=1", 1)):
        document = admin.get(f"/admin/tenants{query}").get_json()
        assert (len(document["tenants"]), document["moreAvailable"]) == (count, True)


def test_tenants_are_filtered_by_status_and_date(admin: ApiClient, clock: Clock) -> None:
    clock.advance(60)
    old = create(admin, "old@acme.example")
    clock.advance(60)
    new = create(admin, "new@acme.example")
    admin.put(f"/admin/tenants/{new['tenant_id']}/status", json={"status": "VALIDATED"})

    def list_ids(query: str) -> list[str]:
        return tenant_ids(admin.get(f"/admin/tenants?{query}").get_json())

    assert list_ids("status=VALIDATED") == [new["tenant_id"]]
    assert list_ids("status=UNVALIDATED") == [old["tenant_id"]]
    assert list_ids(f"since={new['date_created']}") == [new["tenant_id"]]
    assert list_ids(f"until={new['date_created']}") == [old["tenant_id"], "system"]
    assert list_ids(f"since={old['date_created']}&until={new['date_created']}&status=VALIDATED") == []
    admin.delete(f"/admin/tenants/{new['tenant_id']}")
    assert list_ids("status=VALIDATED") == []
    assert list_ids("status=VALIDATED&includeInactive=true") == [new["tenant_id"]]


def test_audit_log_is_paged_newest_first(admin: ApiClient) -> None:
    create(admin, tenant_id="acme")
    for number in range(6):
        admin.patch("/admin/tenants/acme", json={"rate_limit": number})
    response = admin.get("/admin/tenants/acme/audit?pageSize=4")

    assert [entry["number"] for entry in response.get_json()] == [7, 6, 5, 4]
    assert response.headers["Link"] == '</admin/tenants/acme/audit?pageSize=4&startAt=4>; rel="next"'
    rest = admin.get("/admin/tenants/acme/audit?pageSize=4&startAt=4")
    assert [entry["number"] for entry in rest.get_json()] == [3, 2, 1]
    assert "Link" not in rest.headers


def test_admin_creates_the_first_key_of_a_tenant(admin: ApiClient, client: FlaskClient) -> None:
    create(admin, tenant_id="acme")
    response = admin.post("/admin/tenants/acme/keys", json={"name": "first", "scopes": ["tenant:manage"]})
    assert response.status_code == 201

    first = ApiClient(client, response.get_json()["key"])
    assert first.get("/me").get_json()["tenant_id"] == "acme"
    assert [key["name"] for key in first.get("/keys").get_json()] == ["first"]
    [entry, _] = get_audit_log(admin, "acme")
    changes = {"key_id": {"from": None, "to": response.get_json()["key_id"]}}
    assert (entry["action"], entry["changes"]) == ("key_created", changes)


def test_only_system_can_have_an_admin_key(admin: ApiClient, tenant_factory: TenantFactory) -> None:
    create(admin, tenant_id="acme")
    response = admin.post("/admin/tenants/acme/keys", json={"scopes": ["admin"]})
    assert problem(response) == (409, "not-allowed")
    assert admin.post("/admin/tenants/system/keys", json={"scopes": ["admin"]}).status_code == 201
    assert tenant_factory.key_service.list("acme") == []
