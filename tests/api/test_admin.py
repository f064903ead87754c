"""/admin/tenants: the registry."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from inbox.domain.tenants import TenantStatus
from tests.api.conftest import ApiClient, Clock, Tenancy, pointers

OPS = "Ops@Acme.example"


def created(admin: ApiClient, email: str = OPS, **members: Any) -> dict[str, Any]:
    response = admin.post("/admin/tenants", json={"email": email} | members)
    assert response.status_code == 201, response.text
    tenant: dict[str, Any] = response.get_json()
    return tenant


def trail(admin: ApiClient, tenant_id: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = admin.get(f"/admin/tenants/{tenant_id}/audit").get_json()
    return entries


def ids(document: dict[str, Any]) -> list[str]:
    return [tenant["tenant_id"] for tenant in document["tenants"]]


def admin_key_id(tenancy: Tenancy) -> str:
    return tenancy.key_ring.list("system")[0].key_id


def test_a_new_tenant_is_unvalidated_and_active(admin: ApiClient, tenancy: Tenancy) -> None:
    response = admin.post("/admin/tenants", json={"email": OPS, "organization_name": "Acme Corp.", "rate_limit": 5})
    tenant = response.get_json()

    assert response.status_code == 201
    assert response.headers["Location"] == f"/admin/tenants/{tenant['tenant_id']}"
    assert tenant["date_created"] == tenant["date_last_updated"]
    assert {name: value for name, value in tenant.items() if not name.startswith("date_")} == {
        "tenant_id": tenant["tenant_id"],
        "organization_name": "Acme Corp.",
        "email": OPS,
        "destination_email": None,
        "rate_limit": 5,
        "status": "UNVALIDATED",
        "active": True,
        "last_updated_by": admin_key_id(tenancy),
    }
    assert admin.get(response.headers["Location"]).get_json() == tenant


def test_an_email_that_is_there_brings_its_tenant_whatever_its_case(admin: ApiClient) -> None:
    first = created(admin, tenant_id="acme")
    response = admin.post("/admin/tenants", json={"email": OPS.lower(), "organization_name": "Somebody else"})

    assert (response.status_code, response.get_json()) == (200, first)
    assert "Location" not in response.headers


def test_a_deleted_tenant_keeps_its_email(admin: ApiClient) -> None:
    first = created(admin)
    admin.delete(f"/admin/tenants/{first['tenant_id']}")
    response = admin.post("/admin/tenants", json={"email": OPS})
    assert (response.status_code, response.get_json()["active"]) == (200, False)


def test_an_id_that_is_taken_is_a_conflict(admin: ApiClient) -> None:
    created(admin, tenant_id="acme")
    response = admin.post("/admin/tenants", json={"email": "other@acme.example", "tenant_id": "acme"})
    assert (response.status_code, response.get_json()["type"]) == (409, "/problems/already-exists")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/email"),
        ({"email": "nobody"}, "/email"),
        ({"email": "a b@c"}, "/email"),
        ({"email": "a@" + "b" * 250}, "/email"),
        ({"email": None}, "/email"),
        ({"email": OPS, "tenant_id": "a#b"}, "/tenant_id"),
        ({"email": OPS, "tenant_id": ""}, "/tenant_id"),
        ({"email": OPS, "destination_email": "x"}, "/destination_email"),
        ({"email": OPS, "organization_name": ""}, "/organization_name"),
        ({"email": OPS, "organization_name": "x" * 201}, "/organization_name"),
        ({"email": OPS, "organization_name": "a\tb"}, "/organization_name"),
        ({"email": OPS, "rate_limit": -1}, "/rate_limit"),
        ({"email": OPS, "rate_limit": "5"}, "/rate_limit"),
        ({"email": OPS, "status": "REGISTERED"}, "/status"),
        ({"email": OPS, "active": False}, "/active"),
    ],
)
def test_a_bad_tenant_is_refused_with_a_pointer(admin: ApiClient, body: dict[str, Any], pointer: str) -> None:
    response = admin.post("/admin/tenants", json=body)
    assert (response.status_code, pointers(response)) == (422, [pointer])
    assert ids(admin.get("/admin/tenants").get_json()) == ["system"]


def test_what_is_given_is_changed_and_the_rest_is_not(admin: ApiClient, clock: Clock) -> None:
    before = created(admin, tenant_id="acme", organization_name="Acme", rate_limit=5)
    clock.advance(60)
    response = admin.patch(
        "/admin/tenants/acme", json={"organization_name": None, "destination_email": "in@acme.example", "rate_limit": 0}
    )

    changed = {"organization_name": None, "destination_email": "in@acme.example", "rate_limit": 0}
    assert response.status_code == 200
    assert response.get_json() == before | changed | {"date_last_updated": response.get_json()["date_last_updated"]}
    assert response.get_json()["date_last_updated"] > before["date_last_updated"]
    [entry, _] = trail(admin, "acme")
    assert entry["action"] == "updated"
    assert entry["changes"] == {
        "organization_name": {"from": "Acme", "to": None},
        "destination_email": {"from": None, "to": "in@acme.example"},
        "rate_limit": {"from": 5, "to": 0},
    }


def test_an_email_can_move_but_not_onto_anothers(admin: ApiClient) -> None:
    created(admin, tenant_id="acme")
    created(admin, "ops@globex.example", tenant_id="globex")

    response = admin.patch("/admin/tenants/globex", json={"email": OPS.upper()})
    assert (response.status_code, response.get_json()["type"]) == (409, "/problems/email-taken")
    assert admin.patch("/admin/tenants/acme", json={"email": "new@acme.example"}).status_code == 200
    assert admin.patch("/admin/tenants/globex", json={"email": OPS.upper()}).get_json()["email"] == OPS.upper()


def test_only_allowed_transitions_are_made(admin: ApiClient) -> None:
    created(admin, tenant_id="acme")
    allowed = {
        TenantStatus.UNVALIDATED: [TenantStatus.VALIDATED, TenantStatus.SUSPENDED],
        TenantStatus.VALIDATED: [TenantStatus.REGISTERED, TenantStatus.SUSPENDED],
        TenantStatus.REGISTERED: [TenantStatus.SUSPENDED],
        TenantStatus.SUSPENDED: [TenantStatus.REGISTERED],
    }
    for status in TenantStatus:
        for wanted in TenantStatus:
            if wanted is status:
                continue
            for forced in (TenantStatus.REGISTERED, status):
                admin.put("/admin/tenants/acme/status", json={"status": forced, "force": True})
            response = admin.put("/admin/tenants/acme/status", json={"status": wanted})
            if wanted in allowed[status]:
                assert (response.status_code, response.get_json()["status"]) == (200, wanted)
                assert trail(admin, "acme")[0]["forced"] is False
            else:
                problem = response.get_json()
                assert (response.status_code, problem["type"]) == (409, "/problems/wrong-step")
                assert problem["title"] == "Invalid status transition"
                assert problem["detail"] == (
                    f"Cannot change status from {status} to {wanted}. Allowed: {', '.join(allowed[status])}."
                )
                assert admin.get("/admin/tenants/acme").get_json()["status"] == status


@pytest.mark.parametrize("status", ["UNVALIDATED", "VALIDATED", "REGISTERED"])
def test_a_suspended_tenant_can_only_return_to_the_status_before(admin: ApiClient, status: str) -> None:
    created(admin, tenant_id="acme")
    before = admin.put("/admin/tenants/acme/status", json={"status": status, "force": True}).get_json()
    assert "status_before_suspension" not in before
    response = admin.put("/admin/tenants/acme/status", json={"status": "SUSPENDED"})

    assert (response.status_code, response.get_json()["status"]) == (200, "SUSPENDED")
    assert response.get_json()["status_before_suspension"] == status
    for other in {"UNVALIDATED", "VALIDATED", "REGISTERED"} - {status}:
        refused = admin.put("/admin/tenants/acme/status", json={"status": other})
        assert refused.status_code == 409
        assert refused.get_json()["detail"].endswith(f"Allowed: {status}.")
    resumed = admin.put("/admin/tenants/acme/status", json={"status": status})
    assert resumed.get_json() | {"date_last_updated": ""} == before | {"date_last_updated": ""}
    assert [entry["changes"] for entry in trail(admin, "acme")[:2]] == [
        {"status": {"from": "SUSPENDED", "to": status}},
        {"status": {"from": status, "to": "SUSPENDED"}},
    ]


def test_any_step_can_be_forced_and_that_is_written_down(admin: ApiClient, tenancy: Tenancy) -> None:
    created(admin, tenant_id="acme")
    response = admin.put("/admin/tenants/acme/status", json={"status": "REGISTERED", "force": True})

    assert (response.status_code, response.get_json()["status"]) == (200, "REGISTERED")
    entry = trail(admin, "acme")[0]
    assert (entry["forced"], entry["by"]) == (True, admin_key_id(tenancy))
    assert entry["changes"] == {"status": {"from": "UNVALIDATED", "to": "REGISTERED"}}
    # A transition that is allowed anyway does not count as forced.
    admin.put("/admin/tenants/acme/status", json={"status": "SUSPENDED", "force": True})
    assert trail(admin, "acme")[0]["forced"] is False


def test_a_status_that_it_has_already_changes_nothing(admin: ApiClient) -> None:
    before = created(admin, tenant_id="acme")
    assert admin.put("/admin/tenants/acme/status", json={"status": "UNVALIDATED"}).get_json() == before
    assert admin.patch("/admin/tenants/acme", json={"email": OPS}).get_json() == before
    assert len(trail(admin, "acme")) == 1


@pytest.mark.parametrize("body", [{}, {"status": "active"}, {"status": "VALIDATED", "force": "yes"}])
def test_a_bad_status_is_refused(admin: ApiClient, body: dict[str, Any]) -> None:
    created(admin, tenant_id="acme")
    assert admin.put("/admin/tenants/acme/status", json=body).status_code == 422
    assert len(trail(admin, "acme")) == 1


def test_a_deleted_tenant_is_only_hidden_and_comes_back_as_it_was(admin: ApiClient) -> None:
    before = created(admin, tenant_id="acme")
    for _ in range(2):
        assert admin.delete("/admin/tenants/acme").status_code == 204
    assert admin.get("/admin/tenants/acme").get_json()["active"] is False
    assert "acme" not in ids(admin.get("/admin/tenants").get_json())
    assert "acme" in ids(admin.get("/admin/tenants?includeInactive=true").get_json())

    restored = admin.post("/admin/tenants/acme/restore")
    assert restored.status_code == 200
    assert restored.get_json() == before | {"date_last_updated": restored.get_json()["date_last_updated"]}
    assert [entry["action"] for entry in trail(admin, "acme")] == ["restored", "deleted", "created"]
    assert "acme" in ids(admin.get("/admin/tenants").get_json())


def test_the_tenant_of_the_admins_cannot_lock_itself_out(admin: ApiClient) -> None:
    for response in (
        admin.delete("/admin/tenants/system"),
        admin.put("/admin/tenants/system/status", json={"status": "SUSPENDED", "force": True}),
    ):
        assert (response.status_code, response.get_json()["type"]) == (409, "/problems/not-allowed")
    assert admin.get("/me").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("PATCH", "", {}),
        ("DELETE", "", None),
        ("PUT", "/status", {"status": "VALIDATED"}),
        ("POST", "/restore", None),
        ("GET", "/audit", None),
        ("POST", "/keys", {}),
    ],
)
def test_a_tenant_that_is_not_there_is_not_found(
    client: FlaskClient, admin: ApiClient, method: str, path: str, body: dict[str, Any] | None
) -> None:
    for nobody in ("nobody", "n" * 3000, "no%23body"):
        response = client.open(f"/admin/tenants/{nobody}{path}", method=method, json=body, headers=admin.headers)
        assert response.status_code == 404


def test_the_list_is_paged_newest_first(admin: ApiClient, clock: Clock) -> None:
    made = []
    for number in range(7):
        made.append(created(admin, f"{number}@acme.example")["tenant_id"])
        clock.advance(number % 2)
    seen: list[str] = []
    path: str | None = "/admin/tenants?pageSize=3"
    while path:
        response = admin.get(path)
        document = response.get_json()
        seen += ids(document)
        assert document["moreAvailable"] == (document["startAt"] is not None) == ("Link" in response.headers)
        path = document["startAt"] and f"/admin/tenants?pageSize=3&startAt={document['startAt']}"
        assert path is None or response.headers["Link"] == f'<{path}>; rel="next"'
    assert sorted(seen) == sorted([*made, "system"])
    assert seen[:2] == made[:-3:-1]


def test_fifty_come_at_a_time_and_a_hundred_at_most(admin: ApiClient) -> None:
    for number in range(101):
        created(admin, f"{number}@acme.example")
    for query, count in (("", 50), ("?pageSize=100", 100), ("?pageSize=1", 1)):
        document = admin.get(f"/admin/tenants{query}").get_json()
        assert (len(document["tenants"]), document["moreAvailable"]) == (count, True)


def test_the_list_is_filtered_by_status_and_date(admin: ApiClient, clock: Clock) -> None:
    clock.advance(60)
    old = created(admin, "old@acme.example")
    clock.advance(60)
    new = created(admin, "new@acme.example")
    admin.put(f"/admin/tenants/{new['tenant_id']}/status", json={"status": "VALIDATED"})

    def listed(query: str) -> list[str]:
        return ids(admin.get(f"/admin/tenants?{query}").get_json())

    assert listed("status=VALIDATED") == [new["tenant_id"]]
    assert listed("status=UNVALIDATED") == [old["tenant_id"]]
    assert listed(f"since={new['date_created']}") == [new["tenant_id"]]
    assert listed(f"until={new['date_created']}") == [old["tenant_id"], "system"]
    assert listed(f"since={old['date_created']}&until={new['date_created']}&status=VALIDATED") == []
    admin.delete(f"/admin/tenants/{new['tenant_id']}")
    assert listed("status=VALIDATED") == []
    assert listed("status=VALIDATED&includeInactive=true") == [new["tenant_id"]]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("pageSize=0", "/pageSize"),
        ("pageSize=101", "/pageSize"),
        ("pageSize=x", "/pageSize"),
        ("startAt=x", "/startAt"),
        ("startAt=99999999999999.acme", "/startAt"),
        ("startAt=1.a%23b", "/startAt"),
        ("status=active", "/status"),
        ("since=yesterday", "/since"),
        ("includeInactive=1", "/includeInactive"),
        ("limit=5", "/limit"),
    ],
)
def test_a_bad_parameter_is_refused(admin: ApiClient, query: str, pointer: str) -> None:
    response = admin.get(f"/admin/tenants?{query}")
    assert (response.status_code, pointers(response)) == (422, [pointer])


def test_the_audit_trail_is_paged_newest_first(admin: ApiClient) -> None:
    created(admin, tenant_id="acme")
    for number in range(6):
        admin.patch("/admin/tenants/acme", json={"rate_limit": number})
    response = admin.get("/admin/tenants/acme/audit?pageSize=4")

    assert [entry["number"] for entry in response.get_json()] == [7, 6, 5, 4]
    assert response.headers["Link"] == '</admin/tenants/acme/audit?pageSize=4&startAt=4>; rel="next"'
    rest = admin.get("/admin/tenants/acme/audit?pageSize=4&startAt=4")
    assert [entry["number"] for entry in rest.get_json()] == [3, 2, 1]
    assert "Link" not in rest.headers


def test_an_admin_makes_the_first_key_of_a_tenant(admin: ApiClient, client: FlaskClient) -> None:
    created(admin, tenant_id="acme")
    response = admin.post("/admin/tenants/acme/keys", json={"name": "first", "scopes": ["tenant:manage"]})
    assert response.status_code == 201

    caller = ApiClient(client, response.get_json()["key"])
    assert caller.get("/me").get_json()["tenant_id"] == "acme"
    assert [key["name"] for key in caller.get("/keys").get_json()] == ["first"]
    [entry, _] = trail(admin, "acme")
    assert (entry["action"], entry["changes"]) == (
        "key_created",
        {"key_id": {"from": None, "to": response.get_json()["key_id"]}},
    )


def test_nobody_but_system_gets_an_admin_key(admin: ApiClient, tenancy: Tenancy) -> None:
    created(admin, tenant_id="acme")
    response = admin.post("/admin/tenants/acme/keys", json={"scopes": ["admin"]})
    assert (response.status_code, response.get_json()["type"]) == (409, "/problems/not-allowed")
    assert admin.post("/admin/tenants/system/keys", json={"scopes": ["admin"]}).status_code == 201
    assert tenancy.key_ring.list("acme") == []
