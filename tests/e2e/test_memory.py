"""How much memory a worker needs for large requests, measured from outside."""

from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from tests.service import Service, bearer

EVENT_BYTES = 250_000
BATCH_BYTES = 15_500_000
MAX_FACTOR = 8
# Each of these took 36 times the size of a batch when it was parsed as a whole.
SHAPES = {"numbers": b"12", "members": b'{"a":1}'}


def event_of(unit: bytes, size: int) -> bytes:
    return b'{"a":[' + b",".join([unit] * ((size - 8) // (len(unit) + 1))) + b"]}"


def batch_of(event: bytes, count: int) -> bytes:
    return b"[" + b",".join([event] * count) + b"]"


class Worker:
    """The only worker of a service. Its peak counts from here on."""

    def __init__(self, service: Service, key: str) -> None:
        (pid,) = service.workers
        self._process = Path(f"/proc/{pid}")
        self._url = f"{service.url}/events/batch"
        self._headers = bearer(key) | {"Content-Type": "application/json"}
        # Whatever is only made once.
        self.send(batch_of(b'{"a":1}', 500))
        self._before = self._kilobytes("VmRSS")

    def send(self, body: bytes) -> None:
        answer = requests.post(self._url, data=body, headers=self._headers, timeout=120)
        assert answer.status_code == 201, answer.text

    def peak_of(self, body: bytes) -> int:
        """Returns the bytes that the worker had at most beyond what it had at first."""
        (self._process / "clear_refs").write_text("5")
        self.send(body)
        return (self._kilobytes("VmHWM") - self._before) * 1024

    def _kilobytes(self, name: str) -> int:
        lines = (self._process / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


@pytest.fixture(params=["sqlite", "dynamodb_local"])
def worker(request: pytest.FixtureRequest, new_service: Callable[[], Service]) -> Worker:
    service = new_service()
    service.variables["INBOX_WORKERS"] = "1"
    if request.param != "sqlite":
        service.keep_in_dynamodb(request.getfixturevalue(f"{request.param}_url"))
        service.run("init")
    key = service.create_key("acme")
    service.start()
    return Worker(service, key)


def test_largest_batch_of_small_values_takes_less_than_eight_times_its_size(worker: Worker) -> None:
    factors = {}
    for name, unit in SHAPES.items():
        body = batch_of(event_of(unit, EVENT_BYTES), BATCH_BYTES // EVENT_BYTES)
        factors[name] = worker.peak_of(body) / len(body)
    assert max(factors.values()) < MAX_FACTOR, factors


def test_batch_of_native_maps_takes_little_memory(worker: Worker) -> None:
    # DynamoDB keeps a payload of up to 1 KB as a map, of which each number is an object of its own.
    body = batch_of(event_of(b"1", 1_000), 500)
    assert worker.peak_of(body) < 20 * 1024 * 1024
