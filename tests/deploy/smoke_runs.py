"""Runs `deploy/smoke` and reads its output."""

import subprocess
import sys

import requests

from tests.deploy.conftest import CHECKOUT
from tests.service import Service, bearer


def start_smoke(url: str, key: str, *arguments: str) -> subprocess.Popen[str]:
    # Without a value, a variable is not set.
    environment = {"INBOX_URL": url, "INBOX_API_KEY": key, "PATH": "/usr/bin:/bin"}
    return subprocess.Popen(
        [sys.executable, CHECKOUT / "deploy" / "smoke", *arguments],
        env={name: value for name, value in environment.items() if value},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_smoke(url: str, key: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    with start_smoke(url, key, *arguments) as process:
        return wait_for_exit(process)


def wait_for_exit(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    try:
        stdout, stderr = process.communicate(timeout=120)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def failure_of(run: subprocess.CompletedProcess[str]) -> str:
    """Returns the text of the failed check. Asserts that it is the only one, and in the last line."""
    assert run.returncode == 1, run.stdout + run.stderr
    assert run.stderr == ""
    *before, last = run.stdout.splitlines()
    assert all(line.startswith("ok  ") for line in before)
    assert last.startswith("FAILED  ")
    return last.removeprefix("FAILED  ")


def list_events(service: Service, key: str) -> list[dict[str, object]]:
    listed = requests.get(f"{service.url}/events", headers=bearer(key), timeout=10)
    assert listed.status_code == 200
    events: list[dict[str, object]] = listed.json()
    return events
