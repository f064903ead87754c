"""GET /metrics of a real service: the same sums from each process, also while processes are replaced."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.e2e.consumers import Client
from tests.e2e.test_waiting import start_long_poll
from tests.exposition import Exposition
from tests.service import INBOX, Service, until


@contextmanager
def pause_other_workers(service: Service, worker_pid: int) -> Iterator[None]:
    """Stops all workers but one during the block, so that this one gets all requests."""
    others = [each for each in service.worker_pids if each != worker_pid]
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


def send_through_workers(service: Service, key: str, *counts: int) -> None:
    """Sends through each worker as many events as its count says."""
    for worker, count in zip(service.worker_pids, counts, strict=True):
        with pause_other_workers(service, worker):
            for number in range(count):
                Client(service, key).send({"n": number})


def kill_worker(service: Service, pid: int) -> None:
    """Kills the worker, and returns when another one has replaced it."""
    before = set(service.worker_pids)
    os.kill(pid, signal.SIGKILL)
    until(lambda: pid not in service.worker_pids and len(service.worker_pids) == len(before))


def find_metrics_folder(service: Service) -> Path:
    files = [each.readlink() for each in Path(f"/proc/{service.pids[0]}/fd").iterdir()]
    (folder,) = [each for each in files if each.name.startswith("inbox-metrics-")]
    return folder


def test_every_process_returns_the_sums_of_all_while_workers_are_replaced(service: Service) -> None:
    key = service.create_key("acme")
    service.start()
    send_through_workers(service, key, 7, 4)
    for worker in service.worker_pids:
        with pause_other_workers(service, worker):
            assert [read_sums(service) for _ in range(3)] == [[11] * 6] * 3
    seen: list[list[float]] = []
    for worker, stop_signal in zip(service.worker_pids, (signal.SIGKILL, signal.SIGTERM), strict=True):
        before = set(service.worker_pids)
        os.kill(worker, stop_signal)
        while worker in service.worker_pids or len(service.worker_pids) < len(before):
            seen.append(read_sums(service))
    seen += [read_sums(service) for _ in range(4)]
    assert [each for each in seen if each != [11] * 6] == []
    send_through_workers(service, key, 1, 2)
    assert read_sums(service) == [14] * 6

    folder = find_metrics_folder(service)
    assert folder.is_dir()
    service.stop()
    assert not folder.exists()


def test_waiting_polls_are_counted_until_their_worker_ends(service: Service) -> None:
    key = service.create_key("acme")
    service.start()
    first, second = service.worker_pids

    def count_waiting() -> float:
        return scrape(service).value("inbox_waiting_polls")

    with pause_other_workers(service, first):
        poll_of_first = start_long_poll(service, key)
        until(lambda: count_waiting() == 1)
    with pause_other_workers(service, second):
        poll_of_second = start_long_poll(service, key)
        until(lambda: count_waiting() == 2)
    with poll_of_first, poll_of_second:
        kill_worker(service, first)
        until(lambda: count_waiting() == 1)
        Client(service, key).send({"n": 1})
        assert poll_of_second.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert count_waiting() == 0


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


def test_process_that_gunicorn_starts_counts_its_own_requests(service: Service) -> None:
    key = service.create_key("acme")
    gunicorn = [str(INBOX.with_name("gunicorn")), "--no-control-socket", "--bind", f"127.0.0.1:{service.port}"]
    gunicorn += ["--worker-class", "inbox.server.worker.InboxWorker", "--threads", "4", "wsgi:app"]
    service.start_process(gunicorn, Path(__file__).parents[2])
    for number in range(3):
        Client(service, key).send({"n": number})
    assert read_sums(service) == [3] * 6
