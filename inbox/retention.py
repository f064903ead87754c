"""Retention: what is past its time is deleted, a little at a time so that sending always comes first."""

import random
import threading
import time
from collections.abc import Callable, Iterator

import structlog

from inbox.store.port import EventStore

_ROWS_A_STEP = 100
_PAUSE_SECONDS = 0.02
_EVERY_SECONDS = 60.0
_log = structlog.get_logger()


class Retention:
    def __init__(self, store: EventStore, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._now_ms = now_ms

    def purge(self, pause: Callable[[float], object] = time.sleep) -> Iterator[int]:
        """Deletes to the end, and says after each step how many rows it was."""
        while (deleted := self._store.purge(self._now_ms(), _ROWS_A_STEP)) > 0:
            yield deleted
            if deleted < _ROWS_A_STEP:
                return
            pause(_PAUSE_SECONDS)


class BackgroundPurge:
    """Purges once a minute in a thread of its own, until it is stopped."""

    def __init__(self, retention: Retention, every_seconds: float = _EVERY_SECONDS) -> None:
        self._retention = retention
        self._every_seconds = every_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="purge", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when the step under way is done."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        # Several processes start at the same moment and need not purge at the same moment.
        due_seconds = random.uniform(0, self._every_seconds)  # noqa: S311
        while not self._stopping.wait(due_seconds):
            self._purge()
            due_seconds = self._every_seconds

    def _purge(self) -> None:
        try:
            for _ in self._retention.purge(self._stopping.wait):
                if self._stopping.is_set():
                    return
        except Exception as error:
            # Whatever it was, it is for the operator, and the next minute may be better.
            _log.warning("purge failed", error=type(error).__name__, cause=str(error))
