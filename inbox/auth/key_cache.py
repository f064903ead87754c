"""A cache of key records, limited in size and time."""

import threading
import time
from collections.abc import Callable

from cachetools import TLRUCache, TTLCache

from authorizer.resolver import KeyRecord
from inbox.auth.token_buckets import TokenBuckets

_MAX_KEYS = 10_000
_DAY_SECONDS = 86_400


class KeyCache:
    """Records expire after `seconds`, so a revoked key may work for that long.

    `recently_valid` remembers for a day, in all processes, that a key was valid: its bucket has one token, which is
    taken when the key is read.
    """

    def __init__(
        self, seconds: float, recently_valid: TokenBuckets, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds = seconds
        self.timer = timer
        self._recently_valid = recently_valid
        self._mutex = threading.Lock()
        self._known: TLRUCache[str, tuple[KeyRecord, float]] = TLRUCache(
            _MAX_KEYS, lambda _key_hash, known, _now: known[1], timer
        )
        # A separate cache, so that a flood of invented keys cannot evict valid ones.
        self._unknown: TTLCache[str, bool] = TTLCache(_MAX_KEYS, seconds, timer)

    def get(self, key_hash: str) -> KeyRecord | None:
        with self._mutex:
            known = self._known.get(key_hash)
        return None if known is None else known[0]

    def is_unknown(self, key_hash: str) -> bool:
        """Returns True if the store did not have the key at the last read."""
        with self._mutex:
            return key_hash in self._unknown

    def was_recently_valid(self, key_hash: str) -> bool:
        """Returns True if the key was valid within the last day, so that its client is not guessing."""
        return self._recently_valid.peek(key_hash, 1 / _DAY_SECONDS, 1).remaining == 0

    def keep(self, key_hash: str, record: KeyRecord | None, read_at: float) -> None:
        """Caches what the store or a seal contains for the key. `read_at` is the time before the read, by `timer`."""
        with self._mutex:
            if record is None:
                self._unknown[key_hash] = True
                self._known.pop(key_hash, None)
                return
            self._known[key_hash] = record, read_at + self.seconds
        self._recently_valid.take(key_hash, 1 / _DAY_SECONDS, 1)
