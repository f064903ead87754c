"""A service that tests attack over a plain socket, and its tenants."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import requests

from inbox.domain.keys import DEFAULT_SCOPES, Scope
from inbox.domain.tenants import TenantStatus
from inbox.services.keys import KeyService
from inbox.services.tenants import TenantService
from inbox.settings import Settings
from inbox.store.factory import open_store
from tests.service import Service, bearer
from tests.torture.raw_http import Answer, Connection

SECRET = "my-payload"
"""Part of every payload. The log must not contain it."""


@dataclass(frozen=True)
class Tenant:
    url: str
    tenant_id: str
    key: str

    @property
    def authorization(self) -> str:
        return f"Authorization: Bearer {self.key}"

    def send(self) -> str:
        answer = requests.post(f"{self.url}/events", json={"secret": SECRET}, headers=bearer(self.key), timeout=30)
        assert answer.status_code == 201, answer.text
        event_id: str = answer.json()["id"]
        return event_id

    def events(self) -> list[tuple[str, str, int]]:
        """Returns ID, status and deliveries of all its events."""
        found = requests.get(f"{self.url}/events?order=oldest&limit=500", headers=bearer(self.key), timeout=30).json()
        return [(event["id"], event["status"], event["deliveries"]) for event in found]


class Target:
    def __init__(self, folder: Path) -> None:
        self.service = Service(folder)
        # These tests send many invalid keys from one address.
        self.service.variables["INBOX_AUTH_FAILURE_LIMIT"] = "0"
        self.service.start()
        self._store = open_store(Settings(store=self.service.environment["INBOX_STORE"]))
        self._registry = TenantService(self._store.tenants, self._store.now_ms)
        self._key_ring = KeyService(self._store.keys, self._store.tenants, self._store.now_ms)
        self.keys: list[str] = []

    def tenant(self, *scopes: Scope, tenant_id: str = "") -> Tenant:
        """Creates a tenant with a key of these scopes, by default to send and poll."""
        tenant_id = tenant_id or f"t-{uuid4().hex[:12]}"
        if self._store.tenants.get(tenant_id) is None:
            self._registry.create("test", tenant_id, status=TenantStatus.REGISTERED)
        self.keys.append(self._key_ring.create(tenant_id, scopes=scopes or DEFAULT_SCOPES).key)
        return Tenant(self.service.url, tenant_id, self.keys[-1])

    def tell(self, request: str | bytes, *, half_close: bool = True) -> list[Answer]:
        """Sends a request, and returns all responses until the service closes the connection."""
        with Connection(self.service) as connection:
            # The service may respond and close while a flood is still being sent.
            connection.try_to_send(request if isinstance(request, bytes) else request.encode("latin-1"))
            if half_close:
                with suppress(OSError):
                    connection.end()
            return connection.answers()

    def ask(self, method: str, path: str, *headers: str, body: str = "") -> Answer:
        """Returns the one response to a request with these headers."""
        lines = [f"{method} {path} HTTP/1.1", "Host: x", "Connection: close", *headers]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        [answer] = self.tell("\r\n".join([*lines, "", body]))
        return answer

    def stop(self) -> None:
        self._store.close()
        self.service.kill()


def is_problem(answer: Answer, status: int, slug: str) -> bool:
    """Returns True for a problem document with this status and slug, whose request ID is that of the header."""
    problem = answer.json()
    named = (problem["status"], problem["type"], problem["request_id"])
    return (
        answer.headers["content-type"] == "application/problem+json"
        and answer.status == status
        and named == (status, f"/problems/{slug}", answer.headers["x-request-id"])
    )
