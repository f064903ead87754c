"""Readiness of the store, checked at most once a second.

`/readyz` needs no key, and a check writes and syncs. Without a cache a flood of requests would use up the disk's
throughput.
"""

import threading
import time
from collections.abc import Callable

from inbox.errors import StoreUnavailable

_CACHE_SECONDS = 1.0


class ReadinessCheck:
    def __init__(self, check_store: Callable[[], None], timer: Callable[[], float] = time.monotonic) -> None:
        self._check_store = check_store
        self._timer = timer
        self._mutex = threading.Lock()
        self._fresh_until = float("-inf")
        self._failure: StoreUnavailable | None = None

    def check(self) -> None:
        """Raises StoreUnavailable if the last check failed. Concurrent callers wait for one check and share it."""
        with self._mutex:
            if self._timer() >= self._fresh_until:
                self._failure = None
                try:
                    self._check_store()
                except StoreUnavailable as error:
                    self._failure = error
                # From the end of the check: callers that waited for a slow one must not repeat it one by one.
                self._fresh_until = self._timer() + _CACHE_SECONDS
            if self._failure is not None:
                raise StoreUnavailable(*self._failure.args)
