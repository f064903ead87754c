"""Token buckets in memory that forked processes share, in a table of fixed size.

A bucket is one number: when it will be full again (GCRA). One that is full is as good as one that was never there, so
a place in the table is free again as soon as its time has passed. Processes do not lock each other out: of two that
come to one bucket at the same moment one may not be counted.
"""

import hashlib
import mmap
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

_NUMBER_BYTES = 8
_PLACES = 65_536
_TRIED = 8
# What is lost to rounding counts neither as a token nor as a second.
_ROUNDING = 0.001


@dataclass(frozen=True, slots=True)
class BucketState:
    """Of a bucket: `wait_seconds` is 0 where a token was there."""

    remaining: int
    wait_seconds: float
    full_in_seconds: int


class TokenBuckets:
    """Made before the fork, it counts for all processes together."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._memory = memoryview(mmap.mmap(-1, 2 * _PLACES * _NUMBER_BYTES))
        # Each number is written in one go: another process sees it before or after, and never in between.
        self._owners = self._memory[: _PLACES * _NUMBER_BYTES].cast("Q")
        self._full_at = self._memory[_PLACES * _NUMBER_BYTES :].cast("d")
        self._mutex = threading.Lock()
        self._seconds = seconds

    def take(self, name: str, per_second: float, size: int) -> BucketState:
        """Takes a token, if there is one, from the bucket of that name: so many fit in, so many come back a second."""
        return self._touch(name, per_second, size, 1)

    def peek(self, name: str, per_second: float, size: int) -> BucketState:
        """Where it stands, without taking any."""
        return self._touch(name, per_second, size, 0)

    def _touch(self, name: str, per_second: float, size: int, tokens: int) -> BucketState:
        owner = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
        token, whole = 1 / per_second, size / per_second
        with self._mutex:
            now = self._seconds()
            place, full_at = self._find(owner, now)
            # Never further off than an empty bucket's: the place may have had another owner a moment ago.
            full_at = min(max(full_at, now), now + whole)
            wait = full_at + token - now - whole
            if wait <= token * _ROUNDING:
                wait = 0.0
                full_at += token * tokens
                if tokens:
                    self._full_at[place] = full_at
                    self._owners[place] = owner
        remaining = int((now + whole - full_at) / token + _ROUNDING)
        return BucketState(max(0, remaining), wait, ceil(full_at - now - _ROUNDING))

    def _find(self, owner: int, now: float) -> tuple[int, float]:
        """The owner's place, or else the one nearby that is free, or nearest to it."""
        nearest = (-1, float("inf"))
        for step in range(_TRIED):
            place = (owner + step) % _PLACES
            full_at = self._full_at[place]
            if self._owners[place] == owner:
                return place, full_at
            if full_at < nearest[1]:
                nearest = (place, full_at)
        return nearest[0], now
