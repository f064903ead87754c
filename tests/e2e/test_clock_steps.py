"""Steps of the machine's wall clock while a service runs."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.service import Service, bearer

STEP_SECONDS = 300
LEASE_SECONDS = 3
# Every process of the service reads the machine's wall clock plus the seconds in a file.
SITECUSTOMIZE = """
import time
from pathlib import Path

shift = Path(__file__).with_name("shift_seconds")
real_ns = time.time_ns
time.time_ns = lambda: real_ns() + int(shift.read_text()) * 10**9
time.time = lambda: time.time_ns() / 10**9
"""


class WallClock:
    """The wall clock that the processes of a service read."""

    def __init__(self, folder: Path, service: Service) -> None:
        self._folder = folder
        folder.joinpath("sitecustomize.py").write_text(SITECUSTOMIZE)
        service.variables["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
        self.set_ahead(0)

    def set_ahead(self, seconds: int) -> None:
        self._folder.joinpath("new").write_text(str(seconds))
        self._folder.joinpath("new").rename(self._folder / "shift_seconds")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(tmp_path)
    yield service
    service.kill()


def call(service: Service, key: str, method: str, path: str, **body: Any) -> Any:
    # A new connection per request, so that requests reach every worker process.
    response = requests.request(method, service.url + path, json=body or None, headers=bearer(key), timeout=30)
    assert response.ok, response.text
    return response.json()


@pytest.mark.parametrize("step_seconds", [STEP_SECONDS, -STEP_SECONDS])
def test_step_of_the_wall_clock_moves_no_lease_and_reorders_nothing(service: Service, step_seconds: int) -> None:
    (folder := service.folder / "clock").mkdir()
    wall_clock = WallClock(folder, service)
    key = service.create_key("acme")
    service.start()

    def send(number: int) -> int:
        return int(call(service, key, "POST", "/events", event_type="t", payload={"number": number})["timestamp"])

    def poll(query: str) -> list[Any]:
        events: list[Any] = call(service, key, "GET", f"/inbox?{query}")
        return events

    timestamps = [send(number) for number in range(2)]
    # This lease is longer than the start of a worker, and shorter than the step.
    (kept,) = poll("mode=lease&limit=1&lease_seconds=120")
    leased_at = time.monotonic()
    poll(f"mode=lease&limit=1&lease_seconds={LEASE_SECONDS}")
    wall_clock.set_ahead(step_seconds)
    # A worker process that starts after the step must have the same time as the others.
    service.kill_workers(service.worker_pids[:1])
    service.wait_for_workers()
    service.wait_until_ready()

    timestamps += [send(number) for number in range(2, 12)]
    assert timestamps == sorted(timestamps)
    assert timestamps[-1] - timestamps[0] < STEP_SECONDS * 1000 / 2
    assert call(service, key, "POST", "/inbox/ack", receipts=[kept["receipt"]])["acknowledged"] == [kept["id"]]
    arrived_at: dict[int, float] = {}
    deadline = leased_at + LEASE_SECONDS + 20
    while len(arrived_at) < 11 and time.monotonic() < deadline:
        arrived_at |= {event["payload"]["number"]: time.monotonic() for event in poll("wait=5")}
    assert arrived_at.pop(1) - leased_at > LEASE_SECONDS * 0.99
    assert list(arrived_at) == list(range(2, 12))
