"""Every route rejects invalid keys, keys without the scope or of another tenant, and malformed requests."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from authorizer import apikey
from inbox.domain.keys import Scope
from inbox.domain.tenants import TenantStatus
from tests.api.conftest import ApiClient, TenantFactory, pointers, problem
from tests.api.routes import GUARDED, OWN_SCOPES, ROUTES, Sample, create_sample


@pytest.fixture
def sample(tenant_factory: TenantFactory) -> Sample:
    return create_sample(tenant_factory)


def test_table_has_every_route_of_the_app(app: Flask) -> None:
    routes = {
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert routes == set(ROUTES)


def create_revoked_key(sample: Sample) -> str:
    new = sample.tenant_factory.key_service.create("acme", scopes=OWN_SCOPES)
    sample.tenant_factory.key_service.revoke(new.metadata.key_id)
    return new.key


def create_expired_key(sample: Sample) -> str:
    new = sample.tenant_factory.key_service.create("acme", scopes=OWN_SCOPES, expires_at_ms=2**45)
    assert sample.tenant_factory.key_service.keys.expire(new.metadata.key_id, 1)
    return new.key


def change_checksum(sample: Sample) -> str:
    key = sample.owner.key
    return key[:-1] + ("a" if key[-1] != "a" else "b")


INVALID_KEYS: dict[str, Callable[[Sample], str | None]] = {
    "no key": lambda _: None,
    "nonsense": lambda _: "nonsense",
    "wrong checksum": change_checksum,
    "unknown": lambda _: apikey.mint(),
    "revoked": create_revoked_key,
    "expired": create_expired_key,
}


def test_every_invalid_key_gets_the_same_401_on_every_route(sample: Sample) -> None:
    keys = {kind: create(sample) for kind, create in INVALID_KEYS.items()}
    before, responses = sample.read_state(), set()
    for route in GUARDED:
        for kind, key in keys.items():
            response = sample.call(route, key)
            assert response.status_code == 401, (route, kind)
            document = {name: value for name, value in response.get_json().items() if name != "request_id"}
            responses.add((response.headers["WWW-Authenticate"], response.content_type, str(document)))
    assert len(responses) == 1
    assert sample.read_state() == before


@pytest.mark.parametrize("scope", Scope)
def test_scope_opens_its_routes_only(sample: Sample, scope: Scope) -> None:
    key = sample.tenant_factory.create_client("system", scope).key
    for route in GUARDED:
        response = sample.call(route, key)
        if scope in ROUTES[route].scopes:
            assert response.status_code not in (401, 403), route
        else:
            assert problem(response) == (403, "missing-scope"), route
        if scope in ROUTES[route].peek_scopes:
            assert sample.call(route, key, "?mode=peek").status_code not in (401, 403), route


@pytest.mark.parametrize(
    "query",
    [
        *("", "?mode=consume", "?mode=lease", "?mode=lease&wait=20&lease_seconds=5", "?mode=consume&mode=peek"),
        *("?Mode=peek", "?mode=PEEK", "?mode=peek%20", "?mode[]=peek"),
    ],
)
def test_events_read_alone_cannot_consume_or_lease(sample: Sample, query: str) -> None:
    reader = sample.tenant_factory.create_client("acme", Scope.EVENTS_READ)
    before = sample.read_state()
    for path in ("/inbox", "/inbox/crm", "/inbox/unknown"):
        refused = reader.get(path + query, headers={"Inbox-Attempt": "1"})
        assert problem(refused) == (403, "missing-scope"), path
        assert refused.get_json()["detail"] == "This request needs a key with the scope inbox:read."
    assert sample.read_state() == before


def test_repeated_mode_does_not_consume(sample: Sample) -> None:
    reader = sample.tenant_factory.create_client("acme", Scope.EVENTS_READ)
    before = sample.read_state()
    assert problem(reader.get("/inbox?mode=peek&mode=consume")) == (422, "invalid-request")
    assert sample.read_state() == before


@pytest.mark.parametrize(
    ("query", "scopes"),
    [("", "inbox:read"), ("?mode=lease", "inbox:read"), ("?mode=peek", "events:read or inbox:read")],
)
def test_403_of_a_poll_names_the_scopes_that_suffice_for_its_mode(sample: Sample, query: str, scopes: str) -> None:
    sender = sample.tenant_factory.create_client("acme", Scope.EVENTS_WRITE)
    assert sender.get(f"/inbox{query}").get_json()["detail"] == f"This request needs a key with the scope {scopes}."


def test_key_of_another_tenant_sees_and_changes_nothing(sample: Sample) -> None:
    before = sample.read_state()
    other = sample.tenant_factory.create_client("globex", *OWN_SCOPES)
    # PUT /inboxes/<name> comes last, because it creates the inbox for the other tenant too.
    for route in sorted(GUARDED, key=("PUT", "/inboxes/<name>").__eq__):
        response = sample.call(route, other.key)
        assert response.status_code == ROUTES[route].foreign_status, route
        for marker in ("of acme", sample.values["event_id"], sample.values["key_id"], "Acme"):
            assert marker not in response.text, route
        assert sample.read_state() == before, route


def test_resource_of_another_tenant_looks_like_a_missing_one(acme: ApiClient, globex: ApiClient) -> None:
    foreign = acme.get(f"/events/{globex.send({})['id']}", headers={"X-Request-Id": "x"})
    missing = acme.get("/events/6f7dd7a3-6f0c-4c1e-9a53-0d7b1f0c6a55", headers={"X-Request-Id": "x"})
    assert (foreign.status_code, foreign.text) == (missing.status_code, missing.text)


def test_unknown_or_repeated_parameter_is_rejected_on_every_route(sample: Sample) -> None:
    before = sample.read_state()
    for route in GUARDED:
        for query, pointer in (("?limt=5", "/limt"), ("?a%2Fb=", "/a~1b"), ("?limit=5&limit=5", "/limit")):
            response = sample.call_with_allowed_key(route, query)
            assert response.status_code == 422, (route, query)
            assert pointer in pointers(response), (route, query)
            assert sample.read_state() == before, (route, query)


# A wrong content type, a body that is not JSON, and an incomplete body.
BROKEN_BODIES: dict[tuple[int, str], dict[str, Any]] = {
    (415, "unsupported-media-type"): {"content_type": "text/plain"},
    (400, "not-json"): {"data": b"{"},
    (400, "bad-request"): {"data": b"{", "environ_overrides": {"CONTENT_LENGTH": "50"}},
}


def test_broken_body_is_rejected_on_every_route_that_reads_it(sample: Sample) -> None:
    before = sample.read_state()
    for route in GUARDED:
        for (status, slug), options in BROKEN_BODIES.items():
            # An incomplete body is an error even if the route reads no body.
            if ROUTES[route].body is not None or (slug == "bad-request" and route[0] != "GET"):
                response = sample.call_with_allowed_key(route, **{"content_type": "application/json"} | options)
                assert (response.status_code, response.get_json()["type"]) == (status, f"/problems/{slug}"), route
                assert sample.read_state() == before, route


def test_keys_of_a_suspended_or_deleted_tenant_open_nothing(sample: Sample) -> None:
    suspended, deleted = (sample.tenant_factory.create_client(tenant, *OWN_SCOPES).key for tenant in ("acme", "globex"))
    sample.tenant_factory.tenant_service.set_status("acme", "test", TenantStatus.SUSPENDED)
    sample.tenant_factory.tenant_service.delete("globex", "test")
    for route in GUARDED:
        for key in (suspended, deleted):
            response = sample.call(route, key)
            assert problem(response) == (403, "tenant-inactive"), route


def test_public_routes_need_no_key(sample: Sample) -> None:
    for route in ROUTES.keys() - set(GUARDED):
        for key in (None, "nonsense"):
            assert sample.call(route, key).status_code == ROUTES[route].foreign_status, route
