"""A tenant of a running service, and what its other programs do meanwhile."""

import uuid
from dataclasses import dataclass
from typing import Any

import requests

from tests.service import Service, bearer

ALL = ("events:write", "inbox:read", "tenant:manage")


@dataclass(frozen=True)
class Api:
    """Calls with one key, of which none is expected to be refused unless it says so."""

    url: str
    key: str

    def call(self, method: str, path: str, body: object = None, status: int | None = None) -> requests.Response:
        answer = requests.request(method, f"{self.url}{path}", headers=bearer(self.key), json=body, timeout=30)
        assert answer.ok if status is None else answer.status_code == status, answer.text
        return answer

    def send(self, payload: object, event_type: str | None = None) -> str:
        """Its id."""
        event = {"payload": payload} | ({} if event_type is None else {"event_type": event_type})
        return str(self.call("POST", "/events", event).json()["id"])

    def send_text(self, body: str) -> str:
        """An envelope, to the letter. Its id."""
        headers = bearer(self.key) | {"Content-Type": "application/json"}
        answer = requests.post(f"{self.url}/events", data=body.encode(), headers=headers, timeout=30)
        assert answer.ok, answer.text
        return str(answer.json()["id"])

    def send_many(self, count: int, event_type: str = "order.created") -> None:
        """In order, each with its number."""
        for start in range(0, count, 500):
            numbers = range(start, min(start + 500, count))
            self.call("POST", "/events/batch", [{"event_type": event_type, "payload": {"n": n}} for n in numbers])

    def poll(self, query: str = "") -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = self.call("GET", f"/inbox{query}").json()
        return events

    def key_named(self, name: str) -> dict[str, Any]:
        (key,) = [key for key in self.call("GET", "/keys").json() if key["name"] == name]
        found: dict[str, Any] = key
        return found

    def event(self, event_id: str) -> dict[str, Any]:
        event: dict[str, Any] = self.call("GET", f"/events/{event_id}").json()
        return event


@dataclass(frozen=True)
class Account:
    """A tenant that had nothing when the test began."""

    tenant_id: str
    admin: Api

    def key(self, *scopes: str, name: str = "browser") -> str:
        body = {"name": name, "scopes": scopes or ALL}
        return str(self.admin.call("POST", f"/admin/tenants/{self.tenant_id}/keys", body).json()["key"])

    def api(self, *scopes: str) -> Api:
        return Api(self.admin.url, self.key(*scopes, name="another program"))


def admin_of(service: Service) -> Api:
    options = [word for scope in (*ALL, "admin") for word in ("--scope", scope)]
    return Api(service.url, service.create_key("system", *options))


def new_account(admin: Api, name: str | None = None) -> Account:
    tenant_id = f"tenant-{uuid.uuid4().hex[:8]}"
    body = {"tenant_id": tenant_id, "email": f"{tenant_id}@example.com", "organization_name": name}
    admin.call("POST", "/admin/tenants", body)
    admin.call("PUT", f"/admin/tenants/{tenant_id}/status", {"status": "REGISTERED", "force": True})
    return Account(tenant_id, admin)
