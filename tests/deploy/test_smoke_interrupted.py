"""An interrupted `deploy/smoke` erases its event, and the next run erases the event of a killed one."""

import signal
import subprocess
from collections.abc import Callable

import pytest
import requests

from tests.deploy.smoke_runs import list_events, run_smoke, start_smoke, wait_for_exit
from tests.deploy.tampering_proxy import Exchange, on, run_tampering_proxy, set_status
from tests.service import Service, bearer


def run_disturbed(
    service: Service, key: str, requests_to_disturb: tuple[str, ...], disturb: Callable[[subprocess.Popen[str]], None]
) -> subprocess.CompletedProcess[str]:
    """Runs the script, and calls `disturb` while the script waits for the response to one of these requests."""
    processes: list[subprocess.Popen[str]] = []

    def change(exchange: Exchange) -> None:
        if exchange.request.startswith(requests_to_disturb):
            disturb(processes[0])

    with run_tampering_proxy(service.url, change) as url, start_smoke(url, key) as process:
        processes.append(process)
        return wait_for_exit(process)


def kill_during(service: Service, key: str, request: str) -> None:
    assert run_disturbed(service, key, (request,), subprocess.Popen.kill).returncode == -signal.SIGKILL


@pytest.mark.parametrize("stop_signal", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_is_reported_and_the_event_is_erased(
    stop_signal: signal.Signals, running_service: Service, key: str
) -> None:
    run = run_disturbed(running_service, key, ("HEAD /inbox",), lambda process: process.send_signal(stop_signal))
    assert (run.returncode, run.stderr) == (1, "")
    *before, last = run.stdout.splitlines()
    assert all(line.startswith("ok  ") for line in before)
    assert last == f"FAILED  stopped by {stop_signal.name}"
    assert list_events(running_service, key) == []


def test_second_signal_does_not_interrupt_the_erasing(running_service: Service, key: str) -> None:
    def interrupt(process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGINT)

    # The first signal interrupts POST /events, so its event ID is unknown and the request is sent again.
    run = run_disturbed(running_service, key, ("POST /events", "DELETE /events/"), interrupt)
    assert (run.returncode, run.stderr) == (1, "")
    assert run.stdout.splitlines()[-1] == "FAILED  stopped by SIGINT"
    assert list_events(running_service, key) == []


def test_closed_stdout_ends_the_run_and_the_event_is_erased(running_service: Service, key: str) -> None:
    def stop_reading(process: subprocess.Popen[str]) -> None:
        assert process.stdout
        process.stdout.close()

    processes: list[subprocess.Popen[str]] = []
    with (
        run_tampering_proxy(running_service.url, on("HEAD /inbox", lambda _: stop_reading(processes[0]))) as url,
        start_smoke(url, key) as process,
    ):
        processes.append(process)
        assert process.stderr
        assert process.stderr.read() == ""
        assert process.wait(120) == 1
    assert list_events(running_service, key) == []


def test_both_failures_are_reported_if_the_service_goes_away(running_service: Service, key: str) -> None:
    def hang_up(exchange: Exchange) -> None:
        if exchange.request.startswith(("HEAD", "DELETE")):
            raise ConnectionError

    with run_tampering_proxy(running_service.url, hang_up) as url:
        run = run_smoke(url, key)
    assert (run.returncode, run.stderr) == (1, "")
    first, second = run.stdout.splitlines()[-2:]
    assert first.startswith("FAILED  HEAD /inbox got no response: ")
    assert second.startswith("FAILED  DELETE /events/")


@pytest.mark.parametrize(
    ("last_request", "left_as"),
    [("HEAD /inbox", "undelivered"), ("GET /inbox?mode=lease", "leased"), ("POST /inbox/ack", "delivered")],
)
def test_event_of_a_killed_run_is_erased_by_the_next(
    last_request: str, left_as: str, running_service: Service, key: str
) -> None:
    kill_during(running_service, key, last_request)
    assert [event["status"] for event in list_events(running_service, key)] == [left_as]
    run = run_smoke(running_service.url, key)
    assert (run.returncode, run.stderr) == (0, "")
    assert "ok  events left by an earlier run are erased: 1\n" in run.stdout
    assert list_events(running_service, key) == []


def test_event_of_a_killed_run_that_cannot_be_erased_is_reported(running_service: Service, key: str) -> None:
    kill_during(running_service, key, "HEAD /inbox")
    before = list_events(running_service, key)
    with run_tampering_proxy(running_service.url, on("DELETE /events/", set_status(500))) as url:
        run = run_smoke(url, key)
    last = run.stdout.splitlines()[-1]
    assert last == f"FAILED  the event {before[0]['id']}, left by an earlier run, could not be erased"


@pytest.mark.parametrize(
    "event",
    [
        {"event_type": "smoke", "payload": {"order": 1}},
        {"event_type": "order.created", "payload": {"sent_by": "deploy/smoke"}},
    ],
)
def test_nothing_changes_if_another_producer_has_sent(
    event: dict[str, object], running_service: Service, key: str
) -> None:
    kill_during(running_service, key, "HEAD /inbox")
    sent = requests.post(f"{running_service.url}/events", json=event, headers=bearer(key), timeout=10)
    assert sent.status_code == 201
    before = list_events(running_service, key)
    run = run_smoke(running_service.url, key)
    assert (run.returncode, run.stderr) == (1, "")
    assert "in use: it has undelivered events" in run.stdout.splitlines()[-1]
    assert list_events(running_service, key) == before
    assert len(before) == 2


def test_nothing_changes_if_more_than_a_page_is_undelivered(running_service: Service, key: str) -> None:
    own = [{"event_type": "smoke", "payload": {"sent_by": "deploy/smoke"}} for _ in range(20)]
    sent = requests.post(
        f"{running_service.url}/events/batch", json=[*own, {"order": 1}], headers=bearer(key), timeout=10
    )
    assert sent.status_code == 201
    run = run_smoke(running_service.url, key)
    assert run.returncode == 1
    assert "in use: it has undelivered events" in run.stdout.splitlines()[-1]
    assert len(list_events(running_service, key)) == 21
