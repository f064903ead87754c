"""In one process, polls of the same inbox take their events one after the other.

What a poll is about to take may still go to another process. So the next poll must not pass it by, or its consumer
could get it there after later ones. Nor must it go for it too: every condition that fails costs a write unit.
"""

import threading
import time
from weakref import WeakValueDictionary

from inbox.errors import StoreUnavailable
from inbox.store.dynamodb.filling import MOST_SECONDS


class Turn:
    """One poll's, as often as it needs one and as long as its patience lasts."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._until = time.monotonic() + MOST_SECONDS
        self.waited_ms = 0

    def __enter__(self) -> None:
        if self._lock.acquire(blocking=False):
            return
        began = time.monotonic()
        if not self._lock.acquire(timeout=max(0.0, self._until - began)):
            raise StoreUnavailable("Other polls of the inbox take too long.")
        self.waited_ms += int((time.monotonic() - began) * 1000)

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Turns:
    def __init__(self) -> None:
        self._mutex = threading.Lock()
        # Only those of polls that are at work.
        self._locks: WeakValueDictionary[tuple[str, str], threading.Lock] = WeakValueDictionary()

    def of(self, tenant_id: str, inbox: str) -> Turn:
        with self._mutex:
            return Turn(self._locks.setdefault((tenant_id, inbox), threading.Lock()))
