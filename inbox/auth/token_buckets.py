"""Token buckets in memory shared by forked processes, in a table of fixed size.

A bucket is one number: the time when it will be full again (GCRA). A full bucket is the same as a new one, so its slot
is free once that time has passed. Processes do not lock the table: if two take a token from one bucket at the same
moment, one may not be counted.
"""

import hashlib
import mmap
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

_NUMBER_BYTES = 8
_SLOTS = 65_536
_PROBES = 8
# Tolerance for rounding errors, in tokens and seconds.
_ROUNDING = 0.001


@dataclass(frozen=True, slots=True)
class BucketState:
    """`wait_seconds` is 0 if a token was available."""

    size: int
    remaining: int
    wait_seconds: float
    full_in_seconds: int


class TokenBuckets:
    """Create it before the fork to share it between processes."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._memory = memoryview(mmap.mmap(-1, 2 * _SLOTS * _NUMBER_BYTES))
        # Aligned 8-byte writes are atomic: another process sees the old or the new value.
        self._owners = self._memory[: _SLOTS * _NUMBER_BYTES].cast("Q")
        self._full_at = self._memory[_SLOTS * _NUMBER_BYTES :].cast("d")
        self._mutex = threading.Lock()
        self._timer = timer

    def peek(self, name: str, per_second: float, size: int) -> BucketState:
        """Returns the state of the bucket without taking a token."""
        return self.take(name, per_second, size, 0)

    def take(self, name: str, per_second: float, size: int, tokens: int = 1) -> BucketState:
        """Takes `tokens` (0 or 1) if the bucket has one. Returns its state. It refills `per_second` up to `size`."""
        owner = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
        token_seconds, refill_seconds = 1 / per_second, size / per_second
        with self._mutex:
            now = self._timer()
            slot, full_at = self._find(owner, now)
            # No later than an empty bucket's: another process may have taken over the slot a moment ago.
            full_at = min(max(full_at, now), now + refill_seconds)
            wait_seconds = full_at + token_seconds - now - refill_seconds
            if wait_seconds <= token_seconds * _ROUNDING:
                wait_seconds = 0.0
                full_at += token_seconds * tokens
                if tokens:
                    self._full_at[slot] = full_at
                    self._owners[slot] = owner
        remaining = int((now + refill_seconds - full_at) / token_seconds + _ROUNDING)
        return BucketState(size, max(0, remaining), wait_seconds, ceil(full_at - now - _ROUNDING))

    def _find(self, owner: int, now: float) -> tuple[int, float]:
        """Returns the owner's slot and when its bucket is full, or the slot that is free first and `now`."""
        for slot in (slots := [(owner + step) % _SLOTS for step in range(_PROBES)]):
            if self._owners[slot] == owner:
                return slot, self._full_at[slot]
        return min(slots, key=self._full_at.__getitem__), now
