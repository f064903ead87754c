"""Retries of the Python recipe, against a service that fails as each test says."""

import importlib.util
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType

import pytest
import requests

from tests.recipes import pages

# Each is a status and its Retry-After, or None for a connection that closes without a response.
Failures = list[tuple[int, str | None] | None]


class FailingService(HTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.failures: Failures = []


class _Handler(BaseHTTPRequestHandler):
    server: FailingService

    def do_GET(self) -> None:
        failure = self.server.failures.pop(0) if self.server.failures else (200, None)
        if failure is not None:
            self._respond(*failure)

    def _respond(self, status: int, retry_after: str | None) -> None:
        self.send_response(status)
        if retry_after is not None:
            self.send_header("Retry-After", retry_after)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@pytest.fixture
def service() -> Iterator[FailingService]:
    with FailingService() as service:
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield service
        service.shutdown()
        thread.join()


@pytest.fixture
def calls(service: FailingService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.setenv("INBOX_URL", f"http://127.0.0.1:{service.server_port}")
    monkeypatch.setenv("INBOX_API_KEY", "ibx_secret")
    file = tmp_path / "calls.py"
    file.write_text(pages.read("python.md").file("calls.py"))
    specification = importlib.util.spec_from_file_location("calls", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    yield module
    module.session.close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Returns a list that gets each pause in seconds. The pauses are skipped."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        ([], []),
        ([(429, "7")], [7]),
        ([(503, "3600")], [60]),
        ([None, (502, None), (503, "1"), None], [2, 4, 1, 16]),
    ],
)
def test_failed_calls_are_retried_after_retry_after_or_a_growing_pause(
    service: FailingService, calls: ModuleType, pauses: list[float], failures: Failures, expected: list[float]
) -> None:
    service.failures = failures
    assert calls.call("GET", "/inbox").status_code == 200
    assert pauses == expected


@pytest.mark.parametrize(("last", "error"), [((503, None), requests.HTTPError), (None, requests.ConnectionError)])
def test_call_fails_after_five_tries(
    service: FailingService,
    calls: ModuleType,
    pauses: list[float],
    last: tuple[int, str | None] | None,
    error: type[Exception],
) -> None:
    service.failures = [None, None, None, None, last, last]
    with pytest.raises(error):
        calls.call("GET", "/inbox")
    assert (len(pauses), len(service.failures)) == (4, 1)


def test_rejected_call_is_not_retried(service: FailingService, calls: ModuleType, pauses: list[float]) -> None:
    service.failures = [(401, None), (401, None)]
    with pytest.raises(requests.HTTPError):
        calls.call("GET", "/inbox")
    assert (pauses, len(service.failures)) == ([], 1)
