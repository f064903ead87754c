"""The memory that a worker process uses for large requests."""

from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from tests.service import Service, bearer

EVENT_BYTES = 250_000
BATCH_BYTES = 15_500_000
MAX_FACTOR = 8
# A batch of these takes 36 times its size if it is parsed as a whole.
SHAPES = {"numbers": b"12", "members": b'{"a":1}'}


def make_event(unit: bytes, size_bytes: int) -> bytes:
    return b'{"a":[' + b",".join([unit] * ((size_bytes - 8) // (len(unit) + 1))) + b"]}"


def make_batch(event: bytes, count: int) -> bytes:
    return b"[" + b",".join([event] * count) + b"]"


class Worker:
    """The only worker process of a service, and its memory in addition to that of a small request."""

    def __init__(self, service: Service, key: str) -> None:
        (pid,) = service.worker_pids
        self._process = Path(f"/proc/{pid}")
        self._url = f"{service.url}/events/batch"
        self._headers = bearer(key) | {"Content-Type": "application/json"}
        # The first request also loads code, which must not count.
        self.send(make_batch(b'{"a":1}', 500))
        self._baseline_kilobytes = self._read_kilobytes("VmRSS")

    def send(self, body: bytes) -> None:
        response = requests.post(self._url, data=body, headers=self._headers, timeout=120)
        assert response.status_code == 201, response.text

    def measure_peak_bytes(self, body: bytes) -> int:
        """Returns the maximum number of additional bytes while the worker handles a request."""
        (self._process / "clear_refs").write_text("5")
        self.send(body)
        return (self._read_kilobytes("VmHWM") - self._baseline_kilobytes) * 1024

    def _read_kilobytes(self, name: str) -> int:
        lines = (self._process / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


@pytest.fixture(params=["sqlite", "dynamodb_local"])
def worker(request: pytest.FixtureRequest, new_service: Callable[[], Service]) -> Worker:
    service = new_service()
    service.variables["INBOX_WORKERS"] = "1"
    if request.param != "sqlite":
        service.keep_in_dynamodb(request.getfixturevalue(f"{request.param}_url"))
        service.invoke("init")
    key = service.create_key("acme")
    service.start()
    return Worker(service, key)


def test_largest_batch_of_small_values_takes_less_than_eight_times_its_size(worker: Worker) -> None:
    factors = {}
    for name, unit in SHAPES.items():
        body = make_batch(make_event(unit, EVENT_BYTES), BATCH_BYTES // EVENT_BYTES)
        factors[name] = worker.measure_peak_bytes(body) / len(body)
    assert max(factors.values()) < MAX_FACTOR, factors


def test_batch_of_native_maps_takes_little_memory(worker: Worker) -> None:
    # DynamoDB keeps a payload of up to 1 KB as a map, in which each number is a separate object.
    body = make_batch(make_event(b"1", 1_000), 500)
    assert worker.measure_peak_bytes(body) < 20 * 1024 * 1024
