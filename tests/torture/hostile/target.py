"""A service that tests attack over a plain socket, and its tenants."""

from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from tests.e2e.consumers import Client
from tests.service import Service
from tests.torture.raw_http import Connection, Response

SECRET = "my-payload"
"""Part of every payload. The log must not contain it."""


class Tenant(Client):
    def __init__(self, service: Service, tenant_id: str, key: str) -> None:
        super().__init__(service, key)
        self.tenant_id = tenant_id
        self.authorization = f"Authorization: Bearer {key}"

    def send_secret(self) -> str:
        """Sends an event and returns its ID."""
        return self.send({"secret": SECRET})

    def list_events(self) -> list[tuple[str, str, int]]:
        """Returns the ID, status and deliveries of all its events."""
        events = self.get("/events?order=oldest&limit=500")
        return [(event["id"], event["status"], event["deliveries"]) for event in events]


class Target:
    def __init__(self, folder: Path) -> None:
        self.service = Service(folder)
        # These tests send many invalid keys from one address.
        self.service.variables["INBOX_AUTH_FAILURE_LIMIT"] = "0"
        self.service.start()
        self.keys: list[str] = []

    def create_tenant(self, tenant_id: str = "", *key_options: str) -> Tenant:
        tenant_id = tenant_id or f"t-{uuid4().hex[:12]}"
        self.keys.append(self.service.create_key(tenant_id, *key_options))
        return Tenant(self.service, tenant_id, self.keys[-1])

    def exchange(self, request: str | bytes, *, half_close: bool = True) -> list[Response]:
        """Sends a request, and returns all responses until the service closes the connection."""
        with Connection(self.service) as connection:
            # The service may respond and close while a flood is still being sent.
            connection.try_to_send(request if isinstance(request, bytes) else request.encode("latin-1"))
            if half_close:
                with suppress(OSError):
                    connection.half_close()
            return connection.read_responses()

    def request(self, method: str, path: str, *headers: str, body: str = "") -> Response:
        """Returns the one response to a request with these headers."""
        lines = [f"{method} {path} HTTP/1.1", "Host: x", "Connection: close", *headers]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        [response] = self.exchange("\r\n".join([*lines, "", body]))
        return response


def is_problem(response: Response, status: int, slug: str) -> bool:
    """Returns True for a problem document with this status and slug, and with the request ID of the header."""
    problem = response.json()
    members = problem["status"], problem["type"], problem["request_id"]
    return (
        response.headers["content-type"] == "application/problem+json"
        and response.status == status
        and members == (status, f"/problems/{slug}", response.headers["x-request-id"])
    )
