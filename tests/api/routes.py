"""Every route of the app, and a tenant to call them with."""

import json
from dataclasses import dataclass
from typing import Any

from werkzeug.test import TestResponse

from inbox.domain.keys import Scope
from tests.api.conftest import ApiClient, TenantFactory

PUBLIC: frozenset[Scope] = frozenset()
ANY_KEY = frozenset(Scope)
EVENTS_WRITE, EVENTS_READ, INBOX_READ, TENANT_MANAGE, ADMIN = (frozenset({scope}) for scope in Scope)
OWN_SCOPES = (Scope.EVENTS_WRITE, Scope.INBOX_READ, Scope.TENANT_MANAGE)


@dataclass(frozen=True)
class Route:
    """A key needs one of `scopes`, or with `mode=peek` one of `peek_scopes`.

    `foreign_status` is the status for another tenant's key with `OWN_SCOPES`, and of public routes without a key.
    """

    scopes: frozenset[Scope]
    foreign_status: int = 200
    body: Any = None
    peek_scopes: frozenset[Scope] = frozenset()


_RECEIPTS = {"receipts": ["{receipt}"]}
ROUTES: dict[tuple[str, str], Route] = {
    ("POST", "/events"): Route(EVENTS_WRITE, 201, {}),
    ("POST", "/events/batch"): Route(EVENTS_WRITE, 201, [{}]),
    ("GET", "/events"): Route(EVENTS_READ | INBOX_READ),
    ("GET", "/events/<uuid:event_id>"): Route(EVENTS_READ | INBOX_READ, 404),
    ("DELETE", "/events/<uuid:event_id>"): Route(TENANT_MANAGE, 404),
    ("POST", "/events/<uuid:event_id>/replay"): Route(INBOX_READ, 404),
    ("POST", "/events/replay"): Route(INBOX_READ, 200, {}),
    ("GET", "/inbox"): Route(INBOX_READ, peek_scopes=EVENTS_READ),
    ("GET", "/inbox/<name>"): Route(INBOX_READ, 404, peek_scopes=EVENTS_READ),
    ("POST", "/inbox/ack"): Route(INBOX_READ, 200, _RECEIPTS),
    ("POST", "/inbox/release"): Route(INBOX_READ, 200, _RECEIPTS),
    ("POST", "/inbox/extend"): Route(INBOX_READ, 200, _RECEIPTS),
    ("GET", "/inboxes"): Route(EVENTS_READ | INBOX_READ | TENANT_MANAGE),
    ("GET", "/inboxes/<name>"): Route(EVENTS_READ | INBOX_READ | TENANT_MANAGE, 404),
    ("PUT", "/inboxes/<name>"): Route(TENANT_MANAGE, 201, {}),
    ("DELETE", "/inboxes/<name>"): Route(TENANT_MANAGE, 404),
    ("GET", "/stats"): Route(EVENTS_READ | INBOX_READ),
    ("GET", "/keys"): Route(TENANT_MANAGE),
    ("POST", "/keys"): Route(TENANT_MANAGE, 201, {}),
    ("DELETE", "/keys/<key_id>"): Route(TENANT_MANAGE, 404),
    ("POST", "/keys/<key_id>/rotate"): Route(TENANT_MANAGE, 404, {}),
    ("GET", "/me"): Route(ANY_KEY),
    ("GET", "/admin/tenants"): Route(ADMIN, 403),
    ("POST", "/admin/tenants"): Route(ADMIN, 403, {"email": "new@acme.example"}),
    ("GET", "/admin/tenants/<tenant_id>"): Route(ADMIN, 403),
    ("PATCH", "/admin/tenants/<tenant_id>"): Route(ADMIN, 403, {"rate_limit": 1}),
    ("DELETE", "/admin/tenants/<tenant_id>"): Route(ADMIN, 403),
    ("PUT", "/admin/tenants/<tenant_id>/status"): Route(ADMIN, 403, {"status": "SUSPENDED"}),
    ("POST", "/admin/tenants/<tenant_id>/restore"): Route(ADMIN, 403),
    ("GET", "/admin/tenants/<tenant_id>/audit"): Route(ADMIN, 403),
    ("POST", "/admin/tenants/<tenant_id>/keys"): Route(ADMIN, 403, {}),
    ("GET", "/healthz"): Route(PUBLIC),
    ("GET", "/readyz"): Route(PUBLIC),
    ("GET", "/metrics"): Route(PUBLIC),
    ("GET", "/openapi.json"): Route(PUBLIC),
    ("GET", "/docs"): Route(PUBLIC),
    ("GET", "/static/<path:filename>"): Route(PUBLIC, 404),
    ("GET", "/problems"): Route(PUBLIC),
    ("GET", "/problems/<slug>"): Route(PUBLIC),
    ("GET", "/"): Route(PUBLIC),
    ("GET", "/console/<path:filename>"): Route(PUBLIC, 404),
}
GUARDED = [route for route, row in ROUTES.items() if row.scopes]


@dataclass(frozen=True)
class Sample:
    """The tenant acme with the inbox crm and two events, one of them leased; clients with keys of acme and system."""

    tenant_factory: TenantFactory
    owner: ApiClient
    admin: ApiClient
    values: dict[str, str]

    def call(self, route: tuple[str, str], key: str | None, query: str = "", **overrides: Any) -> TestResponse:
        """Returns the response of the route, called for resources of acme."""
        method, path = route
        for name, value in self.values.items():
            path = path.replace(f"<{name}>", value).replace(f"<uuid:{name}>", value).replace(f"<path:{name}>", value)
        body = json.dumps(ROUTES[route].body).replace("{receipt}", self.values["receipt"])
        options: dict[str, Any] = {"buffered": True}
        if ROUTES[route].body is not None:
            options |= {"data": body, "content_type": "application/json"}
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return self.tenant_factory.client.open(path + query, method=method, headers=headers, **options | overrides)

    def call_with_allowed_key(self, route: tuple[str, str], query: str = "", **overrides: Any) -> TestResponse:
        """Returns the response of the route, called with a key that has one of its scopes."""
        client = self.admin if ROUTES[route].scopes == ADMIN else self.owner
        return self.call(route, client.key, query, **overrides)

    def read_state(self) -> list[Any]:
        """Returns everything that the routes could change."""
        keys = [key | {"last_used_at": None} for key in self.owner.get("/keys").get_json()]
        paths = ("/events?limit=500", "/events?inbox=crm", "/inboxes", "/inboxes/default")
        tenants = self.admin.get("/admin/tenants").get_json()
        return [keys, tenants, *(self.owner.get(path).get_json() for path in paths)]


def create_sample(tenant_factory: TenantFactory) -> Sample:
    tenant_factory.register("acme", "Acme Corp.")
    tenant_factory.register("globex")
    tenant_factory.register("system")
    owner = tenant_factory.create_client("acme", *OWN_SCOPES)
    owner.put("/inboxes/crm")
    event = owner.send({"secret": "of acme"}, event_type="order.created")
    [leased] = owner.lease()
    owner.send({"n": 2})
    values = {
        "event_id": event["id"],
        "receipt": leased["receipt"],
        "name": "crm",
        "key_id": tenant_factory.key_service.list("acme")[0].key_id,
        "tenant_id": "acme",
        "slug": "not-json",
        "filename": "none.js",
    }
    return Sample(tenant_factory, owner, tenant_factory.create_client("system", Scope.ADMIN), values)
