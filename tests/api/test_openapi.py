"""Requests and responses match /openapi.json."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate
from werkzeug.test import TestResponse

from inbox import __version__
from inbox.app import Shared
from inbox.auth.token_buckets import TokenBuckets
from inbox.settings import Settings
from tests.api.conftest import ApiClient, receipts
from tests.api.test_openapi_examples import Spec, resolve
from tests.unit.test_token_buckets import FakeClock

PAGES = {"/", "/docs", "/problems", "/problems/{slug}", "/openapi.json", "/static/{filename}", "/console/{filename}"}
GENERAL_HEADERS = {"Content-Type", "Content-Length", "Cache-Control", "Vary", "X-Content-Type-Options"}
Check = Callable[[TestResponse, str, int], set[str]]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    # Responses have the rate limit headers only if there is a limit.
    return replace(settings, rate_limit=20)


@pytest.fixture
def shared() -> Shared:
    return Shared(TokenBuckets(FakeClock()))


@pytest.fixture
def check(spec: Spec) -> Check:
    """Returns a function that checks a response and returns the names of its headers without GENERAL_HEADERS."""

    def check(response: TestResponse, path: str, status: int) -> set[str]:
        assert response.status_code == status, (path, response.text)
        operation = spec["paths"][path][response.request.method.lower()]
        described = resolve(spec, operation["responses"][str(status)])
        required = {name for name, header in described["headers"].items() if resolve(spec, header)["required"]}
        sent = {*response.headers.keys()} - GENERAL_HEADERS
        assert required <= sent <= described["headers"].keys(), (path, status)
        if status == 204:
            assert "content" not in described
        else:
            schema = described["content"][response.mimetype]["schema"] | {"components": spec["components"]}
            OAS31Validator(schema).validate(response.get_json())
        return sent

    return check


def test_document_is_valid_openapi_31_with_the_version_of_the_package(spec: Spec) -> None:
    assert (spec["openapi"], spec["info"]["version"]) == ("3.1.0", __version__)
    validate(spec)
    problem = spec["components"]["schemas"]["ProblemDocument"]
    assert set(problem["required"]) == {"type", "title", "status", "detail", "request_id"}


def test_document_has_every_route(app: Flask, spec: Spec) -> None:
    routes = {
        (rule.rule.replace("<uuid:", "{").replace("<path:", "{").replace("<", "{").replace(">", "}"), method.lower())
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    described = {(path, method) for path, item in spec["paths"].items() for method in item if method != "parameters"}
    assert {route for route in routes if route[0] not in PAGES} == described


def test_responses_for_events_are_as_described(check: Check, acme: ApiClient) -> None:
    body = {"payload": {"n": 1}, "event_type": "t", "idempotency_key": "k"}
    check(acme.post("/events", json=body), "/events", 201)
    check(acme.post("/events", json=body), "/events", 200)
    check(acme.post("/events/batch", json=[{}, {"a": 1}]), "/events/batch", 201)
    check(acme.get("/inbox?mode=peek"), "/inbox", 200)
    delivered = acme.get("/inbox")
    check(delivered, "/inbox", 200)
    event_id = delivered.get_json()[0]["id"]
    check(acme.get(f"/events/{event_id}"), "/events/{event_id}", 200)
    check(acme.post(f"/events/{event_id}/replay"), "/events/{event_id}/replay", 200)
    check(acme.post("/events/replay", json={}), "/events/replay", 200)
    check(acme.get("/events"), "/events", 200)
    leased = acme.get("/inbox?mode=lease")
    check(leased, "/inbox", 200)
    settled = {"receipts": [*receipts(leased.get_json()), "x"]}
    assert len(settled["receipts"]) == 4
    for verb in ("extend", "release", "ack"):
        check(acme.post(f"/inbox/{verb}", json=settled), f"/inbox/{verb}", 200)
    check(acme.get("/stats"), "/stats", 200)
    check(acme.get("/me"), "/me", 200)
    check(acme.get("/healthz"), "/healthz", 200)


def test_responses_for_inboxes_are_as_described(check: Check, acme: ApiClient, acme_manager: ApiClient) -> None:
    path = "/inboxes/{name}"
    check(acme_manager.put("/inboxes/crm"), path, 201)
    check(acme_manager.put("/inboxes/crm", json={"event_types": ["order.*"]}), path, 200)
    check(acme.get("/inboxes/crm"), path, 200)
    check(acme.get("/inboxes"), "/inboxes", 200)
    check(acme_manager.put("/inboxes/default", json={"enabled": False}), path, 200)
    check(acme.get("/inboxes/default"), path, 200)
    event_id = acme.send({}, event_type="order.created")["id"]
    copies = acme.get("/inbox/crm")
    assert len(copies.get_json()) == 1
    check(copies, "/inbox/{name}", 200)
    check(acme_manager.delete("/inboxes/crm"), path, 204)
    check(acme_manager.delete(f"/events/{event_id}"), "/events/{event_id}", 204)


def test_responses_for_keys_and_tenants_are_as_described(
    check: Check, acme_manager: ApiClient, admin: ApiClient
) -> None:
    created = acme_manager.post("/keys", json={"name": "zap", "expires_at": "2100-01-01"})
    check(created, "/keys", 201)
    key_id = created.get_json()["key_id"]
    check(acme_manager.post(f"/keys/{key_id}/rotate"), "/keys/{key_id}/rotate", 201)
    check(acme_manager.get("/keys"), "/keys", 200)
    check(acme_manager.delete(f"/keys/{key_id}"), "/keys/{key_id}", 204)

    body = {"email": "ops@acme.example", "tenant_id": "new"}
    path = "/admin/tenants/{tenant_id}"
    check(admin.post("/admin/tenants", json=body), "/admin/tenants", 201)
    check(admin.post("/admin/tenants", json=body), "/admin/tenants", 200)
    check(admin.get("/admin/tenants?pageSize=1"), "/admin/tenants", 200)
    check(admin.get("/admin/tenants/new"), path, 200)
    check(admin.patch("/admin/tenants/new", json={"rate_limit": 1}), path, 200)
    for status in ("VALIDATED", "SUSPENDED"):
        check(admin.put("/admin/tenants/new/status", json={"status": status}), f"{path}/status", 200)
    check(admin.delete("/admin/tenants/new"), path, 204)
    check(admin.post("/admin/tenants/new/restore"), f"{path}/restore", 200)
    check(admin.get("/admin/tenants/new/audit"), f"{path}/audit", 200)
    check(admin.post("/admin/tenants/new/keys"), f"{path}/keys", 201)


def test_every_described_header_is_sent(check: Check, spec: Spec, acme: ApiClient) -> None:
    body = {"payload": {}, "idempotency_key": "k"}
    seen = check(acme.post("/events", json=body), "/events", 201)
    seen |= check(acme.post("/events/batch", json=[body]), "/events/batch", 200)
    acme.send_numbered(2)
    seen |= check(acme.get("/events?limit=1"), "/events", 200)
    seen |= check(acme.get("/inbox"), "/inbox", 200)
    seen |= check(acme.get("/inbox?limit=0"), "/inbox", 422)
    seen |= check(acme.post("/events", json={}, headers={"Content-Encoding": "br"}), "/events", 415)
    seen |= check(ApiClient(acme.client, "nobody").get("/me"), "/me", 401)
    while (response := acme.get("/me")).status_code == 200:
        pass
    seen |= check(response, "/me", 429)
    assert seen == spec["components"]["headers"].keys()


@pytest.mark.parametrize("path", ["/inbox", "/inbox/{name}"])
def test_poll_consumes_by_default_and_its_example_is_a_peek(spec: Spec, path: str) -> None:
    [mode] = (each["schema"] for each in spec["paths"][path]["get"]["parameters"] if each["name"] == "mode")
    assert (mode["default"], mode["example"]) == ("consume", "peek")


RECEIPTS: dict[str, Any] = {"receipts": ["x"]}
EVENTS: list[Any] = [{}, {"a": 1}, {"payload": {}}, {"payload": 1}, {"payload": {}, "x": 1}, {"event_type": 7}, 7]
SELECTION = {"since": 5, "until": "2026-11-16", "event_type": "a", "status": "dead", "inbox": "default"}
BODIES: dict[tuple[str, str], list[Any]] = {
    ("post", "/events"): EVENTS,
    ("post", "/events/batch"): [[event] for event in EVENTS],
    ("post", "/inbox/ack"): [RECEIPTS, {"receipts": []}, {"receipts": ["x" * 301]}, {}],
    ("post", "/inbox/release"): [RECEIPTS | {"delay_seconds": seconds} for seconds in (43200, 43201, "1")],
    ("post", "/inbox/extend"): [RECEIPTS | {"lease_seconds": seconds} for seconds in (0, 1)],
    ("post", "/events/replay"): [
        *({}, SELECTION, {"since": None}, {"since": 1.5}, {"status": "delivered"}, {"status": "leased"})
    ],
    ("put", "/inboxes/{name}"): [
        *({}, {"event_types": None}, {"event_types": []}, {"event_types": ["a?"]}, {"event_types": ["a*"] * 51})
    ],
}


@pytest.mark.parametrize(("method", "path"), BODIES)
def test_body_is_accepted_if_and_only_if_it_matches_its_schema(
    spec: Spec, acme: ApiClient, acme_manager: ApiClient, method: str, path: str
) -> None:
    content = spec["paths"][path][method]["requestBody"]["content"]["application/json"]
    schema = content["schema"] | {"components": spec["components"]}
    client = acme_manager if method == "put" else acme
    for body in BODIES[method, path]:
        response = client.request(method, path.format(name="crm"), json=body)
        assert OAS31Validator(schema).is_valid(body) == (response.status_code < 300), body
