"""Runs the compared servers as processes, each on a free port of loopback."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from inbox.settings import Settings

BIN = f"{Path(sys.executable).parent}/"

# The options that `inbox serve` sets, except the worker class.
_SERVICE_OPTIONS = ["--keep-alive", "75", "--graceful-timeout", "8", "--no-control-socket"]
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the same as `inbox serve`
_REFERENCE_THREADS = 32


@dataclass(frozen=True)
class Server:
    target: str
    pid: int
    key: str = ""


@contextmanager
def run_service(database: Path, workers: int = Settings().workers, inbox: str = BIN + "inbox") -> Iterator[Server]:
    """Runs the service on a new or filled database, and yields it with a key of the tenant `bench`.

    `inbox` is the path of the command, in this or another checkout.
    """
    target = _free_address()
    host, port = target.split(":")
    environment = _clean_environment() | {"INBOX_STORE": f"sqlite:///{database}"}

    def run_command(*words: str) -> str:
        done = subprocess.run([inbox, *words], env=environment, capture_output=True, check=True, timeout=30)
        return done.stdout.decode().strip()

    run_command("tenants", "create", "bench")
    key = run_command("keys", "create", "bench")
    command = [inbox, "serve", "--host", host, "--port", port, "--workers", str(workers)]
    with _run_server(command, target, environment) as pid:
        yield Server(target, pid, key)


@contextmanager
def run_reference(worker_class: str = "gthread") -> Iterator[Server]:
    """Runs gunicorn with an empty Flask view, and yields it."""
    target = _free_address()
    options = ["--workers", str(Settings().workers), "--threads", str(_REFERENCE_THREADS), *_SERVICE_OPTIONS]
    options += ["--worker-class", worker_class]
    if _SHARED_MEMORY.is_dir():
        options += ["--worker-tmp-dir", str(_SHARED_MEMORY)]
    command = [BIN + "gunicorn", *options, "--bind", target, "bench.reference:app"]
    with _run_server(command, target, _clean_environment()) as pid:
        yield Server(target, pid)


def worker_pids(server: Server) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()]


def cpu_seconds(server: Server) -> float:
    """Returns the CPU time of all workers so far, user and system."""
    ticks = 0
    for pid in worker_pids(server):
        # The name of the command is in brackets and may contain spaces.
        figures = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(figures[11]) + int(figures[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def resident_megabytes(pid: int) -> float:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


@contextmanager
def _run_server(command: list[str], target: str, environment: dict[str, str]) -> Iterator[int]:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_listening(process, target)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(15)


def _wait_until_listening(process: subprocess.Popen[bytes], target: str) -> None:
    host, port = target.split(":")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server at {target} exited with {process.returncode} before it listened")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"the server at {target} did not listen within 30 seconds")


def _clean_environment() -> dict[str, str]:
    """Returns the environment without settings, so that the defaults are measured."""
    return {name: value for name, value in os.environ.items() if not name.startswith("INBOX_")}


def _free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
