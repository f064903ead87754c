"""GET /metrics of a real service: the same sums from each process, also while processes are replaced."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.e2e.consumers import Client
from tests.e2e.test_waiting import open_wait
from tests.exposition import Exposition
from tests.service import INBOX, Service, until


@contextmanager
def only(service: Service, worker: int) -> Iterator[None]:
    """Stops all other workers during the block."""
    others = [each for each in service.workers if each != worker]
    service.signal_workers(signal.SIGSTOP, others)
    try:
        yield
    finally:
        service.signal_workers(signal.SIGCONT, others)


def scrape(service: Service) -> Exposition:
    response = requests.get(f"{service.url}/metrics", timeout=30)
    assert response.status_code == 200
    return Exposition(response.text)


def read_sums(service: Service) -> list[float]:
    """Returns metrics that only the test's own requests change."""
    found = scrape(service)
    return [
        found.value("inbox_requests_total", route="/events", method="POST", status="201"),
        found.value("inbox_request_duration_seconds_count", route="/events", method="POST"),
        found.value("inbox_events_received_total"),
        found.total("inbox_store_call_duration_seconds_count", operation="events.put"),
        found.total("inbox_store_call_duration_seconds_bucket", operation="events.put", le="+Inf"),
        found.total("inbox_key_lookups_total"),
    ]


def send_through_each(service: Service, key: str, *counts: int) -> None:
    for worker, count in zip(service.workers, counts, strict=True):
        with only(service, worker):
            for number in range(count):
                Client(service, key).send({"n": number})


def kill_worker(service: Service, worker: int) -> None:
    """Kills the worker, and returns when another one has replaced it."""
    before = set(service.workers)
    os.kill(worker, signal.SIGKILL)
    until(lambda: worker not in service.workers and len(service.workers) == len(before))


def find_metrics_folder(service: Service) -> Path:
    files = [each.readlink() for each in Path(f"/proc/{service.processes[0]}/fd").iterdir()]
    (folder,) = [each for each in files if each.name.startswith("inbox-metrics-")]
    return folder


def test_every_process_returns_the_sums_of_all_while_workers_are_replaced(service: Service) -> None:
    key = service.create_key("acme")
    service.start()
    send_through_each(service, key, 7, 4)
    for worker in service.workers:
        with only(service, worker):
            assert [read_sums(service) for _ in range(3)] == [[11] * 6] * 3
    seen: list[list[float]] = []
    for worker, how in zip(service.workers, (signal.SIGKILL, signal.SIGTERM), strict=True):
        before = set(service.workers)
        os.kill(worker, how)
        while worker in service.workers or len(service.workers) < len(before):
            seen.append(read_sums(service))
    seen += [read_sums(service) for _ in range(4)]
    assert [each for each in seen if each != [11] * 6] == []
    send_through_each(service, key, 1, 2)
    assert read_sums(service) == [14] * 6

    folder = find_metrics_folder(service)
    assert folder.is_dir()
    service.stop()
    assert not folder.exists()


def test_waiting_polls_are_counted_until_their_worker_ends(service: Service) -> None:
    key = service.create_key("acme")
    service.start()
    first, second = service.workers

    def waiting() -> float:
        return scrape(service).value("inbox_waiting_polls")

    with only(service, first):
        of_first = open_wait(service, key)
        until(lambda: waiting() == 1)
    with only(service, second):
        of_second = open_wait(service, key)
        until(lambda: waiting() == 2)
    with of_first, of_second:
        kill_worker(service, first)
        until(lambda: waiting() == 1)
        Client(service, key).send({"n": 1})
        assert of_second.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert waiting() == 0


@pytest.mark.parametrize("killed", ["parent", "all"])
def test_start_removes_the_files_of_a_killed_service(service: Service, killed: str) -> None:
    service.start()
    folder = find_metrics_folder(service)
    if killed == "parent":
        service.kill_master()
    else:
        service.kill()
    service.start()
    assert not folder.exists()
    assert find_metrics_folder(service).exists()


def test_processes_that_gunicorn_starts_count_for_themselves(service: Service) -> None:
    key = service.create_key("acme")
    gunicorn = [str(INBOX.with_name("gunicorn")), "--no-control-socket", "--bind", f"127.0.0.1:{service.port}"]
    gunicorn += ["--worker-class", "inbox.server.worker.InboxWorker", "--threads", "4", "wsgi:app"]
    service.start_process(gunicorn, Path(__file__).parents[2])
    for number in range(3):
        Client(service, key).send({"n": number})
    assert read_sums(service) == [3] * 6
