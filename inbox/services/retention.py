"""Retention: what is past its time is deleted, a little at a time so that sending always comes first."""

import threading
import time
from collections.abc import Callable, Iterator

from inbox.store.interface import EventStore

_ROWS_A_STEP = 100
_PAUSE_SECONDS = 0.02


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

    def purge_until(self, stopping: threading.Event) -> None:
        """The same, unless it is told to stop before the end."""
        for _ in self.purge(stopping.wait):
            if stopping.is_set():
                return
