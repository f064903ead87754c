"""What a process does again and again by itself, beside its requests."""

import random
import threading
from collections.abc import Callable

import structlog

_log = structlog.get_logger()


class BackgroundTask:
    """Acts every so many seconds in a thread of its own. What takes long looks whether it is told to stop."""

    def __init__(self, name: str, act: Callable[[threading.Event], object], every_seconds: float) -> None:
        self._name = name
        self._act = act
        self._every_seconds = every_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when what is under way is done."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        # Several processes start at the same moment and need not act at the same moment.
        due_seconds = random.uniform(0, self._every_seconds)  # noqa: S311
        while not self._stopping.wait(due_seconds):
            try:
                self._act(self._stopping)
            except Exception as error:
                # Whatever it was, it is for the operator, and the next time may be better.
                _log.warning(f"{self._name} failed", error=type(error).__name__, cause=str(error))
            due_seconds = self._every_seconds
