"""Resolves an API key into a principal, through a cache bounded in size and in time."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import TTLCache

from authorizer import apikey

_CACHED_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling, and what they may do."""

    tenant_id: str
    tenant_name: str
    tenant_active: bool
    key_id: str
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A stored key that is not revoked, together with its tenant."""

    principal: Principal
    expires_at_ms: int | None


FindKey = Callable[[str], KeyRecord | None]


class Resolver:
    """`find` asks the store for a key by its hash, and answers None for an unknown or revoked one.

    Nothing is remembered for longer than `cache_seconds`, so that is how long a revoked key may still work.
    """

    def __init__(
        self,
        find: FindKey,
        cache_seconds: float,
        now_ms: Callable[[], int],
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find = find
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._known: TTLCache[str, KeyRecord] = TTLCache(_CACHED_KEYS, cache_seconds, timer)
        # Apart from the known ones, so that a flood of made-up keys cannot push real ones out.
        self._unknown: TTLCache[str, bool] = TTLCache(_CACHED_KEYS, cache_seconds, timer)

    def resolve(self, key: str) -> Principal | None:
        """The principal, or None for a key that is malformed, unknown, revoked or expired."""
        record = self._look_up(key)
        if record is None:
            return None
        if record.expires_at_ms is not None and record.expires_at_ms <= self._now_ms():
            return None
        return record.principal

    def _look_up(self, key: str) -> KeyRecord | None:
        key_hash = apikey.hash_of(key)
        with self._lock:
            record = self._known.get(key_hash)
            if record is not None or key_hash in self._unknown:
                return record
        # A made-up key stops here: it reaches neither the store nor the cache.
        if not apikey.is_well_formed(key):
            return None
        record = self._find(key_hash)
        with self._lock:
            if record is None:
                self._unknown[key_hash] = True
            else:
                self._known[key_hash] = record
        return record
