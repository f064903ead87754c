"""HTTP calls of a tenant, and `inbox poll` in a process."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests

from tests.service import INBOX, Service, bearer

ALL_SCOPES = ("--scope", "all")


class Client:
    """Calls a service with one key."""

    def __init__(self, service: Service, key: str) -> None:
        self.service = service
        self.key = key
        self._url = service.url
        self._headers = bearer(key)

    def call(self, method: str, path: str, **content: Any) -> requests.Response:
        # A connection per request, so that every worker gets some requests.
        return requests.request(method, f"{self._url}{path}", headers=self._headers, timeout=40, **content)

    def list_numbers(self, status: str) -> list[int]:
        """Returns the `n` of the events with a status, oldest first."""
        return [event["payload"]["n"] for event in self.get(f"/events?status={status}&order=oldest")]

    def send(self, payload: dict[str, Any]) -> str:
        response = self.call("POST", "/events", json={"payload": payload})
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    def get(self, path: str) -> list[dict[str, Any]]:
        response = self.call("GET", path)
        assert response.status_code == 200, response.text
        events: list[dict[str, Any]] = response.json()
        return events


@contextmanager
def run_poll(client: Client, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Runs `inbox poll` in a process, which it yields, until the end of the block."""
    process = subprocess.Popen(
        [INBOX, "poll", *arguments],
        env=client.service.environment | {"INBOX_API_KEY": client.key},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()
