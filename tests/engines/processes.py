"""Runs a program for the duration of a context."""

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_START_SECONDS = 60


@contextmanager
def started(
    name: str,
    command: Sequence[str | Path],
    folder: Path,
    is_ready: Callable[[], bool],
    environment: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Starts the program and waits until it is ready. Raises RuntimeError with its output if it does not get ready."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not is_ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise RuntimeError(f"{name} did not start:\n{log.read().decode()}")
                time.sleep(0.05)
            yield
        finally:
            process.kill()
            process.wait(10)
