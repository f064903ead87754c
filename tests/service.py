"""The `inbox` command and a service, as processes on a free port."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from inbox.cli import inbox
from inbox.settings import read_settings
from inbox.store.factory import open_store
from inbox.store.interface import Store
from tests.engines.aws import aws_environment

INBOX = Path(sys.executable).with_name("inbox")


def reserve_port() -> socket.socket:
    """Returns a socket that reserves a free port until it is closed. A server with SO_REUSEADDR can listen on it."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def free_port() -> int:
    with reserve_port() as reserved:
        port: int = reserved.getsockname()[1]
        return port


class Service:
    """Runs the `inbox` command with its own store. `start` runs the service."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        reserved = reserve_port()
        # Kept until the end of the test: another process could get the port before the service starts or restarts.
        weakref.finalize(self, reserved.close)
        self.port: int = reserved.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "log"
        self.variables: dict[str, str] = {}
        self.command_prefix: Sequence[str] = ()
        """Words before each command, such as those that enter a mount namespace."""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("INBOX_")}
        return clean | {
            "INBOX_STORE": f"sqlite:///{self.folder}/inbox.db",
            "INBOX_PORT": str(self.port),
            "INBOX_WORKERS": "2",
            **self.variables,
        }

    @contextmanager
    def open_store(self) -> Iterator[Store]:
        """Yields the service's store, opened in this process."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.variables.items():
                patch.setenv(name, value)
            store = open_store(read_settings(self.environment, on_terminal=False))
        with closing(store):
            yield store

    @property
    def is_on_dynamodb(self) -> bool:
        return self.environment["INBOX_STORE"] == "dynamodb://"

    def keep_in_dynamodb(self, url: str) -> None:
        """Configures DynamoDB with a table prefix of its own. `inbox init` has to create the tables."""
        self.variables |= aws_environment(url) | {
            "INBOX_STORE": "dynamodb://",
            "INBOX_TABLE_PREFIX": f"e2e-{uuid.uuid4().hex[:8]}-",
            # The index of DynamoDB Local does not lag. Most tests poll an event right after sending it.
            "INBOX_SETTLE_MS": "0",
        }

    def run(self, *arguments: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in a process and waits for its end."""
        return subprocess.run(
            [*self.command_prefix, INBOX, *arguments],
            input=stdin,
            env=self.environment | variables,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def invoke(self, *arguments: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in this process, which takes a tenth of the time. Not thread-safe."""
        removed = dict.fromkeys(name for name in os.environ if name.startswith("INBOX_"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["inbox", *arguments])
            environment = removed | self.environment | variables
            result = CliRunner().invoke(inbox, arguments, stdin, environment, prog_name="inbox")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)

    def create_key(self, tenant_id: str, *options: str) -> str:
        self.invoke("tenants", "create", tenant_id)
        created = self.invoke("keys", "create", tenant_id, *options)
        assert created.returncode == 0, created.stderr
        return created.stdout.strip()

    def start(self, command: str = "serve") -> None:
        """Returns when the service is ready and all its workers run."""
        self.start_process([*self.command_prefix, INBOX, command], self.folder)
        self.wait_for_workers()

    def wait_for_workers(self) -> None:
        # The first worker responds before the last one is forked.
        until(lambda: len(self.worker_pids) >= int(self.environment["INBOX_WORKERS"]), 30)

    def start_process(self, command: Sequence[str | Path], folder: Path) -> None:
        """Starts the service with this command. Returns when the service is ready."""
        with self.log.open("ab") as log:
            # In its own session, so that one signal reaches all its processes.
            self._process = subprocess.Popen(
                command,
                env=self.environment,
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.wait_until_ready()

    def kill(self) -> None:
        """Sends SIGKILL to every process of the service."""
        self._end(signal.SIGKILL)

    @property
    def pids(self) -> list[int]:
        """Returns the process IDs of the master and its workers."""
        assert self._process is not None
        return [self._process.pid, *self.worker_pids]

    @property
    def worker_pids(self) -> list[int]:
        """Returns the process IDs of the workers."""
        assert self._process is not None
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        pairs = (map(int, line.split()) for line in listed.splitlines())
        return [pid for pid, parent in pairs if parent == self._process.pid]

    def signal_workers(self, with_signal: signal.Signals, pids: Sequence[int]) -> None:
        for pid in pids:
            os.kill(pid, with_signal)

    def kill_workers(self, pids: Sequence[int]) -> None:
        """Returns when the workers are dead and their files closed, even if the master has not noticed."""
        handles = [os.pidfd_open(pid) for pid in pids]
        try:
            self.signal_workers(signal.SIGKILL, pids)
            until(lambda: len(select.select(handles, [], [], 0)[0]) == len(handles))
        finally:
            for handle in handles:
                os.close(handle)

    def kill_master(self) -> None:
        """Kills the master process. Returns when its workers have exited and released the port."""
        orphans = self.worker_pids
        assert self._process is not None
        self._process.kill()
        self._process.wait(15)
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in orphans), 30)
        self._process = None

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def signal_master(self, with_signal: signal.Signals = signal.SIGTERM) -> None:
        """Sends a signal to the master process only, as a supervisor does. By default, the signal stops the service."""
        assert self._process is not None
        self._process.send_signal(with_signal)

    def wait_until_stopped(self, seconds: float = 15) -> None:
        assert self._process is not None
        self._process.wait(seconds)
        self._process = None

    def wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            assert self._process.poll() is None, self.log.read_text()
            try:
                if requests.get(f"{self.url}/readyz", timeout=5).ok:
                    return
            except requests.RequestException:
                pass
            time.sleep(0.02)
        raise AssertionError(f"The service did not start:\n{self.log.read_text()}")

    def _end(self, with_signal: signal.Signals) -> None:
        if self._process is not None:
            # If the service has exited, its log shows why. An error of this signal would hide that.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, with_signal)
            self.wait_until_stopped()


def until(is_true: Callable[[], bool], timeout_seconds: float = 20) -> None:
    """Waits until the function returns True. Fails after the timeout."""
    deadline = time.monotonic() + timeout_seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}
