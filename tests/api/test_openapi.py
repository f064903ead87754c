"""/openapi.json says what the service does."""

from typing import Any

import pytest
from flask import Flask
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from inbox import __version__
from tests.api.conftest import ApiClient

EVENTS: list[Any] = [{}, {"a": 1}, {"payload": {}}, {"payload": 1}, {"payload": {}, "x": 1}, {"event_type": 7}, 7]
PAGES = {"/", "/docs", "/problems", "/problems/{slug}", "/openapi.json", "/static/{filename}", "/console/{filename}"}


def test_version_is_that_of_the_package(spec: dict[str, Any]) -> None:
    assert spec["info"]["version"] == __version__


def test_it_is_valid_openapi_31(spec: dict[str, Any]) -> None:
    assert spec["openapi"] == "3.1.0"
    validate(spec)


def test_every_route_is_in_it(app: Flask, spec: dict[str, Any]) -> None:
    routes = {
        (rule.rule.replace("<uuid:", "{").replace("<path:", "{").replace("<", "{").replace(">", "}"), method.lower())
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    described = {(path, method) for path, item in spec["paths"].items() for method in item if method != "parameters"}
    assert {route for route in routes if route[0] not in PAGES} == described


def _check(spec: dict[str, Any], path: str, method: str, status: int, document: Any) -> None:
    content = spec["paths"][path][method]["responses"][str(status)]["content"]
    schema = content["application/json"]["schema"] | {"components": spec["components"]}
    OAS31Validator(schema).validate(document)


def test_answers_are_as_described(spec: dict[str, Any], acme: ApiClient) -> None:
    body = {"payload": {"n": 1}, "event_type": "t", "idempotency_key": "k"}
    _check(spec, "/events", "post", 201, acme.post("/events", json=body).get_json())
    _check(spec, "/events", "post", 200, acme.post("/events", json=body).get_json())
    _check(spec, "/events/batch", "post", 201, acme.post("/events/batch", json=[{}, {"a": 1}]).get_json())
    _check(spec, "/inbox", "get", 200, acme.get("/inbox?mode=peek").get_json())
    delivered = acme.get("/inbox").get_json()
    assert len(delivered) == 3
    _check(spec, "/inbox", "get", 200, delivered)
    _check(spec, "/events/{event_id}", "get", 200, acme.get(f"/events/{delivered[0]['id']}").get_json())
    replayed = acme.post(f"/events/{delivered[0]['id']}/replay").get_json()
    _check(spec, "/events/{event_id}/replay", "post", 200, replayed)
    _check(spec, "/events/replay", "post", 200, acme.post("/events/replay", json={}).get_json())
    _check(spec, "/events", "get", 200, acme.get("/events").get_json())
    leased = acme.lease()
    assert len(leased) == 3
    _check(spec, "/inbox", "get", 200, leased)
    receipts = [event["receipt"] for event in leased]
    for verb in ("extend", "release", "ack"):
        _check(spec, f"/inbox/{verb}", "post", 200, acme.settle(verb, [*receipts, "x"]))
    _check(spec, "/me", "get", 200, acme.get("/me").get_json())
    _check(spec, "/healthz", "get", 200, acme.get("/healthz").get_json())


def test_inboxes_are_as_described(spec: dict[str, Any], acme: ApiClient, acme_manager: ApiClient) -> None:
    _check(spec, "/inboxes/{name}", "put", 201, acme_manager.put("/inboxes/crm").get_json())
    body = {"event_types": ["order.*"]}
    _check(spec, "/inboxes/{name}", "put", 200, acme_manager.put("/inboxes/crm", json=body).get_json())
    _check(spec, "/inboxes/{name}", "get", 200, acme.get("/inboxes/crm").get_json())
    _check(spec, "/inboxes", "get", 200, acme.get("/inboxes").get_json())
    off = acme_manager.put("/inboxes/default", json={"enabled": False})
    _check(spec, "/inboxes/{name}", "put", 200, off.get_json())
    _check(spec, "/inboxes/{name}", "get", 200, acme.get("/inboxes/default").get_json())
    acme.send({}, event_type="order.created")
    copies = acme.get("/inbox/crm").get_json()
    assert len(copies) == 1
    _check(spec, "/inbox/{name}", "get", 200, copies)
    assert "content" not in spec["paths"]["/inboxes/{name}"]["delete"]["responses"]["204"]


def test_keys_and_tenants_are_as_described(spec: dict[str, Any], acme_manager: ApiClient, admin: ApiClient) -> None:
    made = acme_manager.post("/keys", json={"name": "zap", "expires_at": "2100-01-01"}).get_json()
    _check(spec, "/keys", "post", 201, made)
    _check(spec, "/keys/{key_id}/rotate", "post", 201, acme_manager.post(f"/keys/{made['key_id']}/rotate").get_json())
    _check(spec, "/keys", "get", 200, acme_manager.get("/keys").get_json())

    body = {"email": "ops@acme.example", "tenant_id": "new"}
    path = "/admin/tenants/{tenant_id}"
    _check(spec, "/admin/tenants", "post", 201, admin.post("/admin/tenants", json=body).get_json())
    _check(spec, "/admin/tenants", "post", 200, admin.post("/admin/tenants", json=body).get_json())
    _check(spec, "/admin/tenants", "get", 200, admin.get("/admin/tenants?pageSize=1").get_json())
    _check(spec, path, "get", 200, admin.get("/admin/tenants/new").get_json())
    _check(spec, path, "patch", 200, admin.patch("/admin/tenants/new", json={"rate_limit": 1}).get_json())
    status = admin.put("/admin/tenants/new/status", json={"status": "VALIDATED"}).get_json()
    _check(spec, f"{path}/status", "put", 200, status)
    _check(spec, f"{path}/restore", "post", 200, admin.post("/admin/tenants/new/restore").get_json())
    _check(spec, f"{path}/audit", "get", 200, admin.get("/admin/tenants/new/audit").get_json())
    _check(spec, f"{path}/keys", "post", 201, admin.post("/admin/tenants/new/keys").get_json())


@pytest.mark.parametrize("path", ["/inbox", "/inbox/{name}"])
def test_poll_consumes_by_default_and_its_example_is_a_peek(spec: dict[str, Any], path: str) -> None:
    (mode,) = (each["schema"] for each in spec["paths"][path]["get"]["parameters"] if each["name"] == "mode")
    assert (mode["default"], mode["example"]) == ("consume", "peek")


def test_problems_are_as_described(spec: dict[str, Any], acme: ApiClient) -> None:
    reference = spec["paths"]["/inbox"]["get"]["responses"]["422"]["$ref"]
    response = spec["components"]["responses"][reference.rsplit("/", 1)[1]]
    schema = response["content"]["application/problem+json"]["schema"] | {"components": spec["components"]}
    OAS31Validator(schema).validate(acme.get("/inbox?limit=0").get_json())
    with pytest.raises(Exception, match="required"):
        OAS31Validator(schema).validate({})


BODIES: list[tuple[str, str, Any]] = [
    ("post", "/inbox/ack", {"receipts": ["x"]}),
    ("post", "/inbox/ack", {"receipts": []}),
    ("post", "/inbox/ack", {"receipts": ["x" * 301]}),
    ("post", "/inbox/ack", {}),
    ("post", "/inbox/release", {"receipts": ["x"], "delay_seconds": 43200}),
    ("post", "/inbox/release", {"receipts": ["x"], "delay_seconds": 43201}),
    ("post", "/inbox/release", {"receipts": ["x"], "delay_seconds": "1"}),
    ("post", "/inbox/extend", {"receipts": ["x"], "lease_seconds": 0}),
    ("post", "/inbox/extend", {"receipts": ["x"], "lease_seconds": 1}),
    ("post", "/events/replay", {}),
    (
        "post",
        "/events/replay",
        {"since": 5, "until": "2026-11-16", "event_type": "a", "status": "dead", "inbox": "default"},
    ),
    ("post", "/events/replay", {"since": None}),
    ("post", "/events/replay", {"since": 1.5}),
    ("post", "/events/replay", {"status": "delivered"}),
    ("post", "/events/replay", {"status": "leased"}),
    ("put", "/inboxes/{name}", {}),
    ("put", "/inboxes/{name}", {"event_types": None}),
    ("put", "/inboxes/{name}", {"event_types": []}),
    ("put", "/inboxes/{name}", {"event_types": ["a?"]}),
    ("put", "/inboxes/{name}", {"event_types": ["a*"] * 51}),
]


@pytest.mark.parametrize(("method", "path", "body"), BODIES)
def test_other_bodies_are_described_as_they_are_taken(
    spec: dict[str, Any], acme: ApiClient, acme_manager: ApiClient, method: str, path: str, body: Any
) -> None:
    content = spec["paths"][path][method]["requestBody"]["content"]["application/json"]
    schema = content["schema"] | {"components": spec["components"]}
    caller = acme_manager if method == "put" else acme
    response = caller.client.open(path.format(name="crm"), method=method, json=body, headers=caller.headers)
    assert OAS31Validator(schema).is_valid(body) == (response.status_code < 300)


def test_bodies_are_described_as_they_are_taken(spec: dict[str, Any], acme: ApiClient) -> None:
    for path in ("/events", "/events/batch"):
        content = spec["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        schema = content["schema"] | {"components": spec["components"]}
        for event in EVENTS:
            body = [event] if path == "/events/batch" else event
            taken = acme.post(path, json=body).status_code == 201
            assert OAS31Validator(schema).is_valid(body) == taken, (path, body)
