"""Purges expired rows, in small steps so that requests are not delayed."""

import threading
import time
from collections.abc import Callable, Iterator

from inbox.store.interface import EventStore

_STEP_ROWS = 100
_PAUSE_SECONDS = 0.02


class Retention:
    def __init__(self, store: EventStore, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._now_ms = now_ms

    def purge(self, pause: Callable[[float], object] = time.sleep) -> Iterator[int]:
        """Deletes all expired rows. Yields the number of rows after each step."""
        while (deleted := self._store.purge(self._now_ms(), _STEP_ROWS)) > 0:
            yield deleted
            if deleted < _STEP_ROWS:
                return
            pause(_PAUSE_SECONDS)

    def purge_until(self, stopping: threading.Event) -> None:
        """Deletes all expired rows, or stops early when `stopping` is set."""
        for _ in self.purge(stopping.wait):
            if stopping.is_set():
                return
