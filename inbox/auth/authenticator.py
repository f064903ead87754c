"""Authentication: resolves keys to principals, and counts their requests and failures.

A tenant that exceeds its rate limit is refused in inbox/api/authorization.py.
"""

import ipaddress
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import structlog
from cachetools import LRUCache

from authorizer import apikey, sealing
from authorizer.resolver import KeyRecord, Principal
from inbox.auth.key_cache import KeyCache
from inbox.auth.token_buckets import BucketState, TokenBuckets
from inbox.domain.keys import Scope
from inbox.errors import StoreUnavailable, TooManyFailures, Unauthenticated
from inbox.store.interface import KeyStore

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000
_MAX_RECORDED_USES = 10_000
_WITH_PORT = re.compile(r"^(?:([0-9.]+)|\[(.*)\])(?::[0-9]+)?$")
_log = structlog.get_logger()


class Source(StrEnum):
    """What answered the lookup of a key."""

    CACHE = "cache"
    SEAL = "seal"
    STORE = "store"


class Access(NamedTuple):
    """The hash of a waiting request's key, and the scopes of which the key needs one."""

    key_hash: str
    scopes: tuple[Scope, ...]


@dataclass(slots=True, eq=False, repr=False)
class Authenticator:
    """`secret` is shared with the Lambda authorizer; without it no seal is accepted.

    `on_lookup` is called for each lookup of a well-formed key, with what answered it. `requests_per_second` applies to
    tenants without their own limit, `failures_per_minute` to each address. 0 is unlimited.
    """

    keys: KeyStore
    cache: KeyCache
    buckets: TokenBuckets
    secret: str
    now_ms: Callable[[], int]
    on_lookup: Callable[[Source], object]
    requests_per_second: int
    failures_per_minute: int
    _recorded_uses: LRUCache[str, int] = field(init=False, default_factory=lambda: LRUCache(_MAX_RECORDED_USES))
    _mutex: threading.Lock = field(init=False, default_factory=threading.Lock)

    def identify(
        self, key: str | None, address: str, seal: str | None = None, *, bypass_cache: bool = False
    ) -> Principal:
        """Returns the principal of the key. `bypass_cache` reads the store, whatever is cached or sealed.

        Raises Unauthenticated if the key is not valid, and TooManyFailures if the address has failed too often.
        """
        now_ms = self.now_ms()
        key_hash = apikey.hash_of(key or "")
        record = None if bypass_cache else self.cache.get(key_hash)
        if record is not None:
            self.on_lookup(Source.CACHE)
        elif key is not None:
            sealed = None if bypass_cache else self._from_seal(seal, key_hash, now_ms)
            record = sealed or self._from_store(key, key_hash, address, bypass_cache=bypass_cache)
        if record is None or record.has_expired(now_ms):
            self._limit_failures(self.buckets.take, "failures", address)
            raise Unauthenticated
        self._record_use(key_hash, record, now_ms)
        return record.principal

    def still_allows(self, access: Access) -> bool:
        """Returns True if the key is valid, its tenant active and one of the scopes granted.

        Reads the store and updates the cache. Counts no failure.
        """
        read_at = self.cache.timer()
        record = self.keys.get_by_hash(access.key_hash)
        self.cache.keep(access.key_hash, record, read_at)
        if record is None or record.has_expired(self.now_ms()):
            return False
        principal = record.principal
        return principal.tenant_active and not principal.scopes.isdisjoint(access.scopes)

    def count_request(self, principal: Principal) -> BucketState | None:
        """Counts a request against the tenant's rate limit. Returns None if the tenant is unlimited."""
        own = principal.rate_limit
        limit = self.requests_per_second if own is None else own
        if limit == 0:
            return None
        return self.buckets.take(f"tenant {principal.tenant_id}", limit, limit)

    def _from_seal(self, seal: str | None, key_hash: str, now_ms: int) -> KeyRecord | None:
        """Returns the sealed record after caching it, or None if the seal is missing, invalid or too old."""
        opened = sealing.open_seal(seal, key_hash, self.secret) if seal else None
        if opened is None:
            return None
        age_seconds = (now_ms - opened.sealed_at_ms) / 1000
        if not 0 <= age_seconds < self.cache.seconds:
            return None
        self.cache.keep(key_hash, opened.record, self.cache.timer() - age_seconds)
        self.on_lookup(Source.SEAL)
        return opened.record

    def _from_store(self, key: str, key_hash: str, address: str, *, bypass_cache: bool) -> KeyRecord | None:
        # Invented keys cost neither memory nor a read.
        if not apikey.is_well_formed(key):
            return None
        if self.cache.is_unknown(key_hash) and not bypass_cache:
            self.on_lookup(Source.CACHE)
            return None
        if not self.cache.was_recently_valid(key_hash):
            self._limit_failures(self.buckets.peek, "guesses", address)
        self.on_lookup(Source.STORE)
        read_at = self.cache.timer()
        record = self.keys.get_by_hash(key_hash)
        self.cache.keep(key_hash, record, read_at)
        if record is None:
            # Counted apart from other failures: a client that repeats a revoked key must not block its address.
            self._limit_failures(self.buckets.take, "guesses", address)
        return record

    def _limit_failures(self, touch: Callable[[str, float, int], BucketState], kind: str, address: str) -> None:
        """Calls `touch` (`take` or `peek`) on the bucket of the address. Raises TooManyFailures if it is empty."""
        limit = self.failures_per_minute
        if not limit:
            return
        failures = touch(f"{kind} {_network_of(address)}", limit / 60, limit)
        if failures.wait_seconds:
            raise TooManyFailures(failures.wait_seconds)

    def _record_use(self, key_hash: str, record: KeyRecord, now_ms: int) -> None:
        """Stores the time of the key's last use, up to once an hour."""
        if now_ms - (record.last_used_at_ms or 0) < _HOUR_MS:
            return
        with self._mutex:
            if now_ms - self._recorded_uses.get(key_hash, 0) < _HOUR_MS:
                return
            self._recorded_uses[key_hash] = now_ms
        try:
            self.keys.record_use(key_hash, now_ms)
        except StoreUnavailable as error:
            # The request goes on. Another one retries in a minute.
            with self._mutex:
                self._recorded_uses[key_hash] = now_ms - _HOUR_MS + _MINUTE_MS
            _log.warning("last use of a key not recorded", key_id=record.principal.key_id, cause=str(error))


def _network_of(address: str) -> str:
    """Returns the address, or its /64 network for IPv6, because one client has 2^64 addresses."""
    # Some proxies append the port.
    text = _WITH_PORT.sub(r"\1\2", address)
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return "no address"
    if isinstance(parsed, ipaddress.IPv4Address):
        return text
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))
