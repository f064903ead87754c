"""A fresh tenant of a running service, and an API client for other programs of that tenant."""

import json
import uuid
from dataclasses import dataclass
from typing import Any

import requests

from tests.service import Service, bearer

ALL_SCOPES = ("events:write", "inbox:read", "tenant:manage")


@dataclass(frozen=True)
class ApiClient:
    url: str
    key: str

    def request(self, method: str, path: str, body: object = None, status: int | None = None) -> requests.Response:
        """Returns the response. Fails unless its status is `status`, or a success if `status` is None."""
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = bearer(self.key) | ({} if data is None else {"Content-Type": "application/json"})
        response = requests.request(method, f"{self.url}{path}", headers=headers, data=data, timeout=30)
        assert response.ok if status is None else response.status_code == status, response.text
        return response

    def get(self, path: str) -> Any:
        return self.request("GET", path).json()

    def send(self, payload: object, event_type: str | None = None) -> str:
        """Sends an event and returns its ID."""
        event = {"payload": payload} | ({} if event_type is None else {"event_type": event_type})
        return str(self.request("POST", "/events", event).json()["id"])

    def send_many(self, count: int, event_type: str = "order.created") -> None:
        events = [{"event_type": event_type, "payload": {"n": n}} for n in range(count)]
        self.request("POST", "/events/batch", events)

    def poll(self, query: str = "") -> list[dict[str, Any]]:
        return list(self.get(f"/inbox{query}"))

    def get_key(self, name: str) -> dict[str, Any]:
        (key,) = [key for key in self.get("/keys") if key["name"] == name]
        return dict(key)

    def get_event(self, event_id: str) -> dict[str, Any]:
        return dict(self.get(f"/events/{event_id}"))


@dataclass(frozen=True)
class Tenant:
    tenant_id: str
    admin: ApiClient

    def create_key(self, *scopes: str, name: str = "browser") -> str:
        body = {"name": name, "scopes": scopes or ALL_SCOPES}
        return str(self.admin.request("POST", f"/admin/tenants/{self.tenant_id}/keys", body).json()["key"])

    def create_client(self) -> ApiClient:
        return ApiClient(self.admin.url, self.create_key(name="another program"))


def create_admin(service: Service) -> ApiClient:
    options = [word for scope in (*ALL_SCOPES, "admin") for word in ("--scope", scope)]
    return ApiClient(service.url, service.create_key("system", *options))


def create_tenant(admin: ApiClient, name: str | None = None) -> Tenant:
    tenant_id = f"tenant-{uuid.uuid4().hex[:8]}"
    body = {"tenant_id": tenant_id, "email": f"{tenant_id}@example.com", "organization_name": name}
    admin.request("POST", "/admin/tenants", body)
    admin.request("PUT", f"/admin/tenants/{tenant_id}/status", {"status": "REGISTERED", "force": True})
    return Tenant(tenant_id, admin)
