"""HTTP calls of a tenant, and `inbox poll` in a process."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import requests

from tests.service import INBOX, Service, bearer

ALL_SCOPES = ("--scope", "events:write", "--scope", "inbox:read", "--scope", "tenant:manage")


class Client:
    """Calls a service with one key."""

    def __init__(self, service: Service, key: str) -> None:
        self.service = service
        self.key = key
        self._url = service.url
        self._headers = bearer(key)

    def call(self, method: str, path: str, **content: Any) -> requests.Response:
        # A connection per request, so that all workers get some.
        return requests.request(method, f"{self._url}{path}", headers=self._headers, timeout=40, **content)

    def numbers(self, status: str) -> list[int]:
        """Returns the `n` of the events with a status, oldest first."""
        return [event["payload"]["n"] for event in self.get(f"/events?status={status}&order=oldest")]

    def send(self, payload: dict[str, Any]) -> str:
        answer = self.call("POST", "/events", json={"payload": payload})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def get(self, path: str) -> list[dict[str, Any]]:
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        events: list[dict[str, Any]] = answer.json()
        return events

    def acknowledge(self, events: Sequence[dict[str, Any]]) -> dict[str, Any]:
        answer = self.call("POST", "/inbox/ack", json={"receipts": [event["receipt"] for event in events]})
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document


@contextmanager
def polling(client: Client, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Runs `inbox poll` in a process until the end of the block."""
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
