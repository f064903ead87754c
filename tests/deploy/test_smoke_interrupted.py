"""`deploy/smoke`, ended before its time: it erases what it sent, and the next run what a killed one could not."""

import signal
import subprocess
from collections.abc import Callable

import pytest
import requests

from tests.deploy.smoke_runs import ended, events_of, smoke, started
from tests.deploy.tampering_proxy import Passed, on, status, tampering
from tests.service import Service, bearer


def disturbed(
    service: Service, key: str, calls: list[str], disturb: Callable[[subprocess.Popen[str]], None]
) -> subprocess.CompletedProcess[str]:
    """A run that this happens to while it waits for the answer to those calls."""
    processes: list[subprocess.Popen[str]] = []

    def change(passed: Passed) -> None:
        if passed.call.startswith(tuple(calls)):
            disturb(processes[0])

    with tampering(service.url, change) as url, started(url, key) as process:
        processes.append(process)
        return ended(process)


def killed(service: Service, key: str, call: str) -> None:
    assert disturbed(service, key, [call], subprocess.Popen.kill).returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_is_told_and_the_event_erased(number: signal.Signals, running_service: Service, key: str) -> None:
    run = disturbed(running_service, key, ["HEAD /inbox"], lambda process: process.send_signal(number))
    assert (run.returncode, run.stderr) == (1, "")
    *before, last = run.stdout.splitlines()
    assert all(line.startswith("ok  ") for line in before)
    assert last == f"FAILED  ended by {number.name}"
    assert events_of(running_service, key) == []


def test_a_second_time_does_not_keep_it_from_erasing(running_service: Service, key: str) -> None:
    def again(process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGINT)

    # As the answer to the first is not heard, the event's id is asked for once more.
    run = disturbed(running_service, key, ["POST /events", "DELETE /events/"], again)
    assert (run.returncode, run.stderr) == (1, "")
    assert run.stdout.splitlines()[-1] == "FAILED  ended by SIGINT"
    assert events_of(running_service, key) == []


def test_nobody_reads_on(running_service: Service, key: str) -> None:
    def stop_reading(process: subprocess.Popen[str]) -> None:
        assert process.stdout
        process.stdout.close()

    processes: list[subprocess.Popen[str]] = []
    with (
        tampering(running_service.url, on("HEAD /inbox", lambda _: stop_reading(processes[0]))) as url,
        started(url, key) as process,
    ):
        processes.append(process)
        assert process.stderr
        assert process.stderr.read() == ""
        assert process.wait(120) == 1
    assert events_of(running_service, key) == []


def test_where_nothing_answers_any_more_what_was_first_is_told_too(running_service: Service, key: str) -> None:
    def hang_up(passed: Passed) -> None:
        if passed.call.startswith(("HEAD", "DELETE")):
            raise ConnectionError

    with tampering(running_service.url, hang_up) as url:
        run = smoke(url, key)
    assert (run.returncode, run.stderr) == (1, "")
    first, second = run.stdout.splitlines()[-2:]
    assert first.startswith("FAILED  HEAD /inbox got no answer: ")
    assert second.startswith("FAILED  DELETE /events/")


@pytest.mark.parametrize(
    ("call", "left_as"),
    [("HEAD /inbox", "undelivered"), ("GET /inbox?mode=lease", "leased"), ("POST /inbox/ack", "delivered")],
)
def test_what_a_killed_run_left_is_erased_by_the_next(
    call: str, left_as: str, running_service: Service, key: str
) -> None:
    killed(running_service, key, call)
    assert [event["status"] for event in events_of(running_service, key)] == [left_as]
    run = smoke(running_service.url, key)
    assert (run.returncode, run.stderr) == (0, "")
    assert "ok  what an earlier run had left is erased: 1\n" in run.stdout
    assert events_of(running_service, key) == []


def test_what_cannot_be_erased_for_a_killed_run_is_told(running_service: Service, key: str) -> None:
    killed(running_service, key, "HEAD /inbox")
    before = events_of(running_service, key)
    with tampering(running_service.url, on("DELETE /events/", status(500))) as url:
        run = smoke(url, key)
    last = run.stdout.splitlines()[-1]
    assert last == f"FAILED  the event {before[0]['id']}, which an earlier run had left, could not be erased"


@pytest.mark.parametrize(
    "event",
    [
        {"event_type": "smoke", "payload": {"order": 1}},
        {"event_type": "order.created", "payload": {"sent_by": "deploy/smoke"}},
    ],
)
def test_beside_an_event_of_somebody_else_nothing_is_touched(
    event: dict[str, object], running_service: Service, key: str
) -> None:
    killed(running_service, key, "HEAD /inbox")
    sent = requests.post(f"{running_service.url}/events", json=event, headers=bearer(key), timeout=10)
    assert sent.status_code == 201
    before = events_of(running_service, key)
    run = smoke(running_service.url, key)
    assert (run.returncode, run.stderr) == (1, "")
    assert "in use: it has events waiting" in run.stdout.splitlines()[-1]
    assert events_of(running_service, key) == before
    assert len(before) == 2


def test_where_more_waits_than_it_looks_at_nothing_is_touched(running_service: Service, key: str) -> None:
    own = [{"event_type": "smoke", "payload": {"sent_by": "deploy/smoke"}} for _ in range(20)]
    sent = requests.post(
        f"{running_service.url}/events/batch", json=[*own, {"order": 1}], headers=bearer(key), timeout=10
    )
    assert sent.status_code == 201
    run = smoke(running_service.url, key)
    assert run.returncode == 1
    assert "in use: it has events waiting" in run.stdout.splitlines()[-1]
    assert len(events_of(running_service, key)) == 21
