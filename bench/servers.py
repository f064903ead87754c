"""The two servers that are compared, each started as a user would start it, on a free port of loopback."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inbox.settings import Settings

_BIN = f"{Path(sys.executable).parent}/"


@contextmanager
def ours(folder: Path) -> Iterator[tuple[str, str]]:
    """Where it listens, and a key."""
    target = _free_address()
    host, port = target.split(":")
    environment = _clean_environment() | {"INBOX_STORE": f"sqlite:///{folder}/inbox.db"}

    def run(*words: str) -> str:
        done = subprocess.run([_BIN + "inbox", *words], env=environment, capture_output=True, check=True, timeout=30)
        return done.stdout.decode().strip()

    run("tenants", "create", "bench")
    key = run("keys", "create", "bench")
    with _running([_BIN + "inbox", "serve", "--host", host, "--port", port], target, environment):
        yield target, key


@contextmanager
def reference() -> Iterator[str]:
    settings = Settings()
    target = _free_address()
    options = ["--workers", str(settings.workers), "--threads", str(settings.threads), "--worker-class", "gthread"]
    command = [_BIN + "gunicorn", *options, "--no-control-socket", "--bind", target, "bench.reference:app"]
    with _running(command, target, _clean_environment()):
        yield target


@contextmanager
def _running(command: list[str], target: str, environment: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(process, target)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(15)


def _wait_for(process: subprocess.Popen[bytes], target: str) -> None:
    host, port = target.split(":")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{target} ended with {process.returncode} before it listened")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"{target} did not listen within 30 seconds")


def _clean_environment() -> dict[str, str]:
    """Without settings of whoever runs the bench: the defaults are what is measured."""
    return {name: value for name, value in os.environ.items() if not name.startswith("INBOX_")}


def _free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
