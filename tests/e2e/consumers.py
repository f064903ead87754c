"""What producers and consumers do, in short."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import requests

from tests.service import INBOX, Service, bearer

ALL_SCOPES = ("--scope", "events:write", "--scope", "inbox:read", "--scope", "tenant:manage")


class Client:
    """Calls a service with one key."""

    def __init__(self, service: Service, key: str) -> None:
        self._url = service.url
        self._headers = bearer(key)

    def call(self, method: str, path: str, **content: Any) -> requests.Response:
        # A connection each, so that the workers take turns.
        return requests.request(method, f"{self._url}{path}", headers=self._headers, timeout=40, **content)

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


def following(service: Service, key: str, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """`inbox poll --follow` in a process of its own."""
    return polling(service, key, "--follow", *arguments)


@contextmanager
def polling(service: Service, key: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`inbox poll` in a process of its own."""
    process = subprocess.Popen(
        [INBOX, "poll", *arguments],
        env=service.environment | {"INBOX_API_KEY": key},
        cwd=service.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()
