"""What is remembered of keys, bounded in size and in time."""

import threading
import time
from collections.abc import Callable

from cachetools import TLRUCache, TTLCache

from authorizer.resolver import KeyRecord
from inbox.auth.token_buckets import TokenBuckets

_REMEMBERED = 10_000
_DAY_SECONDS = 86_400


class KeyCache:
    """Nothing is remembered for longer than `seconds`, so that is how long a revoked key may still work.

    Only that there was such a key is remembered for a day, in `met`, by all processes together: a bucket with one
    token, which is taken when the key is met.
    """

    def __init__(
        self, seconds: float, recently_valid: TokenBuckets, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds = seconds
        self.timer = timer
        self._recently_valid = recently_valid
        self._mutex = threading.Lock()
        self._known: TLRUCache[str, tuple[KeyRecord, float]] = TLRUCache(
            _REMEMBERED, lambda _key_hash, known, _now: known[1], timer
        )
        # Apart from the known ones, so that a flood of made-up keys cannot push real ones out.
        self._unknown: TTLCache[str, bool] = TTLCache(_REMEMBERED, seconds, timer)

    def get(self, key_hash: str) -> KeyRecord | None:
        with self._mutex:
            known = self._known.get(key_hash)
        return None if known is None else known[0]

    def is_unknown(self, key_hash: str) -> bool:
        """Whether the store had no such key when it was last asked."""
        with self._mutex:
            return key_hash in self._unknown

    def was_recently_valid(self, key_hash: str) -> bool:
        """Whether there was such a key within a day: who holds one does not guess."""
        return self._recently_valid.peek(key_hash, 1 / _DAY_SECONDS, 1).remaining == 0

    def keep(self, key_hash: str, record: KeyRecord | None, read_at: float) -> None:
        """What the store answered when it was asked, by this cache's timer."""
        with self._mutex:
            if record is None:
                self._unknown[key_hash] = True
                self._known.pop(key_hash, None)
                return
            self._known[key_hash] = record, read_at + self.seconds
        self._recently_valid.take(key_hash, 1 / _DAY_SECONDS, 1)
