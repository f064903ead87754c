"""Purges expired rows, in small steps so that requests are not delayed."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from inbox.store.interface import EventStore

_STEP_ROWS = 100
_PAUSE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Retention:
    store: EventStore
    now_ms: Callable[[], int]

    def purge(self, pause: Callable[[float], object] = time.sleep) -> Iterator[int]:
        """Deletes all expired rows, until `pause` returns True. Yields the number of rows after each step."""
        while (deleted := self.store.purge(self.now_ms(), _STEP_ROWS)) > 0:
            yield deleted
            if deleted < _STEP_ROWS or pause(_PAUSE_SECONDS):
                return

    def purge_until(self, stopping: threading.Event) -> None:
        """Deletes all expired rows, or stops early when `stopping` is set."""
        for _ in self.purge(stopping.wait):
            pass
