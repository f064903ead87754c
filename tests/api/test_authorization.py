"""Every route that the app has, called with every kind of key that should not open it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from authorizer import apikey
from inbox.domain.keys import Scope
from inbox.domain.tenants import TenantStatus
from tests.api.conftest import ApiClient, Tenancy, pointers

PUBLIC: frozenset[Scope] = frozenset()
ANY_KEY = frozenset(Scope)
SEND, LOOK, READ, MANAGE, ADMIN = (frozenset({scope}) for scope in Scope)


@dataclass(frozen=True)
class Row:
    """`scopes` are those that open it, one is enough. `foreign` is what another tenant's key with all of them gets.

    `peek_scopes` are those that open it with `mode=peek` only.
    """

    scopes: frozenset[Scope]
    foreign: int = 200
    body: Any = None
    peek_scopes: frozenset[Scope] = frozenset()


ROWS: dict[tuple[str, str], Row] = {
    ("POST", "/events"): Row(SEND, 201, {}),
    ("POST", "/events/batch"): Row(SEND, 201, [{}]),
    ("GET", "/events"): Row(LOOK | READ),
    ("GET", "/events/<uuid:event_id>"): Row(LOOK | READ, 404),
    ("DELETE", "/events/<uuid:event_id>"): Row(MANAGE, 404),
    ("POST", "/events/<uuid:event_id>/replay"): Row(READ, 404),
    ("POST", "/events/replay"): Row(READ, 200, {}),
    ("GET", "/inbox"): Row(READ, peek_scopes=LOOK),
    ("GET", "/inbox/<name>"): Row(READ, 404, peek_scopes=LOOK),
    ("POST", "/inbox/ack"): Row(READ, 200, {"receipts": ["{receipt}"]}),
    ("POST", "/inbox/release"): Row(READ, 200, {"receipts": ["{receipt}"]}),
    ("POST", "/inbox/extend"): Row(READ, 200, {"receipts": ["{receipt}"]}),
    ("GET", "/inboxes"): Row(LOOK | READ | MANAGE),
    ("GET", "/inboxes/<name>"): Row(LOOK | READ | MANAGE, 404),
    ("PUT", "/inboxes/<name>"): Row(MANAGE, 201, {}),
    ("DELETE", "/inboxes/<name>"): Row(MANAGE, 404),
    ("GET", "/stats"): Row(LOOK | READ),
    ("GET", "/keys"): Row(MANAGE),
    ("POST", "/keys"): Row(MANAGE, 201, {}),
    ("DELETE", "/keys/<key_id>"): Row(MANAGE, 404),
    ("POST", "/keys/<key_id>/rotate"): Row(MANAGE, 404, {}),
    ("GET", "/me"): Row(ANY_KEY),
    ("GET", "/admin/tenants"): Row(ADMIN, 403),
    ("POST", "/admin/tenants"): Row(ADMIN, 403, {"email": "new@acme.example"}),
    ("GET", "/admin/tenants/<tenant_id>"): Row(ADMIN, 403),
    ("PATCH", "/admin/tenants/<tenant_id>"): Row(ADMIN, 403, {"rate_limit": 1}),
    ("DELETE", "/admin/tenants/<tenant_id>"): Row(ADMIN, 403),
    ("PUT", "/admin/tenants/<tenant_id>/status"): Row(ADMIN, 403, {"status": "SUSPENDED"}),
    ("POST", "/admin/tenants/<tenant_id>/restore"): Row(ADMIN, 403),
    ("GET", "/admin/tenants/<tenant_id>/audit"): Row(ADMIN, 403),
    ("POST", "/admin/tenants/<tenant_id>/keys"): Row(ADMIN, 403, {}),
    ("GET", "/healthz"): Row(PUBLIC),
    ("GET", "/readyz"): Row(PUBLIC),
    ("GET", "/metrics"): Row(PUBLIC),
    ("GET", "/openapi.json"): Row(PUBLIC),
    ("GET", "/docs"): Row(PUBLIC),
    ("GET", "/static/<path:filename>"): Row(PUBLIC, 404),
    ("GET", "/problems"): Row(PUBLIC),
    ("GET", "/problems/<slug>"): Row(PUBLIC),
    ("GET", "/"): Row(PUBLIC),
    ("GET", "/console/<path:filename>"): Row(PUBLIC, 404),
}
GUARDED = [route for route, row in ROWS.items() if row.scopes]
OWN_SCOPES = (Scope.EVENTS_WRITE, Scope.INBOX_READ, Scope.TENANT_MANAGE)


@dataclass(frozen=True)
class World:
    """What the tenant acme has, and how to call a route at it."""

    tenancy: Tenancy
    owner: ApiClient
    values: dict[str, str]

    def call(self, route: tuple[str, str], key: str | None, query: str = "", **overrides: Any) -> TestResponse:
        method, rule = route
        path = rule
        for name, value in self.values.items():
            path = path.replace(f"<{name}>", value).replace(f"<uuid:{name}>", value).replace(f"<path:{name}>", value)
        body = json.dumps(ROWS[route].body).replace("{receipt}", self.values["receipt"])
        options: dict[str, Any] = {"buffered": True}
        if ROWS[route].body is not None:
            options |= {"data": body, "content_type": "application/json"}
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return self.tenancy.client.open(path + query, method=method, headers=headers, **options | overrides)

    def state(self) -> list[Any]:
        keys = [key | {"last_used_at": None} for key in self.owner.get("/keys").get_json()]
        paths = ("/events?limit=500", "/events?inbox=crm", "/inboxes")
        return [keys, self.tenancy.registry.get("acme"), *(self.owner.get(path).get_json() for path in paths)]


@pytest.fixture
def world(tenancy: Tenancy) -> World:
    tenancy.register("acme", "Acme Corp.")
    tenancy.register("globex")
    tenancy.register("system")
    owner = tenancy.caller("acme", *OWN_SCOPES)
    owner.put("/inboxes/crm")
    event = owner.send({"secret": "of acme"}, event_type="order.created")
    [leased] = owner.lease()
    values = {
        "event_id": event["id"],
        "receipt": leased["receipt"],
        "name": "crm",
        "key_id": tenancy.key_ring.list("acme")[0].key_id,
        "tenant_id": "acme",
        "slug": "not-json",
        "filename": "none.js",
    }
    return World(tenancy, owner, values)


def test_the_table_has_every_route_of_the_app(app: Flask) -> None:
    routes = {
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert routes == set(ROWS)


def revoked(world: World) -> str:
    new = world.tenancy.key_ring.create("acme", scopes=OWN_SCOPES)
    world.tenancy.key_ring.revoke(new.metadata.key_id)
    return new.key


def expired(world: World) -> str:
    new = world.tenancy.key_ring.create("acme", scopes=OWN_SCOPES, expires_at_ms=2**45)
    store = world.tenancy.key_ring.keys
    assert store.expire(new.metadata.key_id, 1)
    return new.key


def wrong_checksum(world: World) -> str:
    key = world.owner.key
    return key[:-1] + ("a" if key[-1] != "a" else "b")


NOT_VALID: dict[str, Callable[[World], str | None]] = {
    "no key": lambda _: None,
    "nonsense": lambda _: "nonsense",
    "wrong checksum": wrong_checksum,
    "unknown": lambda _: apikey.mint(),
    "revoked": revoked,
    "expired": expired,
}


def test_without_a_valid_key_every_route_gives_the_same_answer(world: World) -> None:
    keys = {kind: key_of(world) for kind, key_of in NOT_VALID.items()}
    before, responses = world.state(), set()
    for route in GUARDED:
        for kind, key in keys.items():
            response = world.call(route, key)
            assert response.status_code == 401, (route, kind)
            document = {name: value for name, value in response.get_json().items() if name != "request_id"}
            responses.add((response.headers["WWW-Authenticate"], response.content_type, str(document)))
    assert len(responses) == 1
    assert world.state() == before


@pytest.mark.parametrize("scope", Scope)
def test_a_key_opens_what_its_scope_allows_and_nothing_else(world: World, scope: Scope) -> None:
    key = world.tenancy.caller("system", scope).key
    for route in GUARDED:
        response = world.call(route, key)
        if scope in ROWS[route].scopes:
            assert response.status_code not in (401, 403), route
        else:
            assert (response.status_code, response.get_json()["type"]) == (403, "/problems/missing-scope"), route
        if scope in ROWS[route].peek_scopes:
            assert world.call(route, key, "?mode=peek").status_code not in (401, 403), route


def test_another_tenants_key_sees_and_changes_nothing(world: World) -> None:
    before = world.state()
    stranger = world.tenancy.caller("globex", *OWN_SCOPES)
    # Last, since it makes an inbox of that name for the stranger too.
    for route in sorted(GUARDED, key=("PUT", "/inboxes/<name>").__eq__):
        response = world.call(route, stranger.key)
        assert response.status_code == ROWS[route].foreign, route
        for marker in ("of acme", world.values["event_id"], world.values["key_id"], "Acme"):
            assert marker not in response.text, route
        assert world.state() == before, route


def test_a_mistyped_or_repeated_parameter_is_refused_before_anything_happens(world: World) -> None:
    before = world.state()
    admin = world.tenancy.caller("system", Scope.ADMIN)
    for route in GUARDED:
        key = (admin if ROWS[route].scopes == ADMIN else world.owner).key
        for query, pointer in (("?limt=5", "/limt"), ("?a%2Fb=", "/a~1b"), ("?limit=5&limit=5", "/limit")):
            response = world.call(route, key, query)
            assert response.status_code == 422, (route, query)
            assert pointer in pointers(response), (route, query)
            assert world.state() == before, (route, query)


CUT_OFF: dict[str, Any] = {
    "data": b"{",
    "content_type": "application/json",
    "environ_overrides": {"CONTENT_LENGTH": "50"},
}


def test_body_that_breaks_off_changes_nothing(world: World) -> None:
    before = world.state()
    admin = world.tenancy.caller("system", Scope.ADMIN)
    for route in GUARDED:
        method, _ = route
        if method != "GET":
            key = (admin if ROWS[route].scopes == ADMIN else world.owner).key
            response = world.call(route, key, **CUT_OFF)
            assert (response.status_code, response.get_json()["type"]) == (400, "/problems/bad-request"), route
            assert world.state() == before, route


def test_the_keys_of_a_suspended_or_deleted_tenant_open_nothing(world: World) -> None:
    suspended, deleted = (world.tenancy.caller(tenant, *OWN_SCOPES).key for tenant in ("acme", "globex"))
    world.tenancy.registry.set_status("acme", "test", TenantStatus.SUSPENDED)
    world.tenancy.registry.delete("globex", "test")
    for route in GUARDED:
        for key in (suspended, deleted):
            response = world.call(route, key)
            assert (response.status_code, response.get_json()["type"]) == (403, "/problems/tenant-inactive"), route


def test_what_is_public_needs_no_key(world: World) -> None:
    for route in ROWS.keys() - set(GUARDED):
        for key in (None, "nonsense"):
            assert world.call(route, key).status_code == ROWS[route].foreign, route
