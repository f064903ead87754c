"""Commands that run in the test's process, on a service that all of these tests share."""

import json
import secrets
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.consumers import ALL_SCOPES, Client
from tests.service import Service


class Tenant:
    """A tenant of the shared service, and commands that use its key."""

    def __init__(self, service: Service, *scopes: str) -> None:
        self.tenant_id = f"t-{secrets.token_hex(8)}"
        self.key = service.create_key(self.tenant_id, *scopes)
        self.client = Client(service, self.key)
        self._service = service

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return self._service.invoke(*arguments, stdin=stdin, INBOX_API_KEY=self.key)

    def read_payloads(self, *arguments: str) -> list[Any]:
        """Returns the payloads of the events that a command prints."""
        done = self.run(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return [json.loads(line)["payload"] for line in done.stdout.splitlines()]


@pytest.fixture(autouse=True)
def unblock_stop_signals() -> Iterator[None]:
    """`inbox backup` blocks stop signals until its process ends, and here that is the process of the tests."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.fixture
def database_path(tmp_path: Path) -> Path:
    return tmp_path / "inbox.db"


@pytest.fixture
def tenant(running_service: Service) -> Tenant:
    return Tenant(running_service, *ALL_SCOPES)
