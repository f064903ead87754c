"""Periodic tasks of a process."""

import random
import threading
from collections.abc import Callable

import structlog

_log = structlog.get_logger()


class BackgroundTask:
    """Calls `run` in a thread, with pauses of `interval_seconds`. `stop` sets the event: a long run should check it."""

    def __init__(self, name: str, run: Callable[[threading.Event], object], interval_seconds: float) -> None:
        self._name = name
        self._run = run
        self._interval_seconds = interval_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, after a run in progress."""
        self._stopping.set()
        self._thread.join()

    def _loop(self) -> None:
        # The processes start together, and their tasks should not run together.
        wait_seconds = random.uniform(0, self._interval_seconds)  # noqa: S311
        while not self._stopping.wait(wait_seconds):
            try:
                self._run(self._stopping)
            except Exception as error:
                # For the operator. The next run may succeed.
                _log.warning(f"{self._name} failed", error=type(error).__name__, cause=str(error))
            wait_seconds = self._interval_seconds
