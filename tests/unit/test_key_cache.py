"""The cache of key records. tests/unit/test_authenticator.py tests when its records expire."""

from authorizer.resolver import KeyRecord, Principal
from inbox.auth.key_cache import KeyCache
from inbox.auth.token_buckets import TokenBuckets
from tests.unit.test_token_buckets import FakeClock

RECORD = KeyRecord(Principal("acme", "Acme", True, "key_1", frozenset({"inbox:read"})))


def test_latest_read_replaces_an_earlier_one() -> None:
    cache = KeyCache(30, TokenBuckets(), FakeClock(0))
    cache.keep("revoked", RECORD, read_at=0)
    cache.keep("revoked", None, read_at=0)
    assert cache.get("revoked") is None


def test_cache_of_zero_seconds_is_disabled() -> None:
    cache = KeyCache(0, TokenBuckets(), FakeClock(0))
    cache.keep("known", RECORD, read_at=0)
    cache.keep("unknown", None, read_at=0)
    assert cache.get("known") is None
    assert not cache.is_unknown("unknown")


def test_all_processes_remember_for_a_day_that_a_key_was_valid() -> None:
    clock = FakeClock(0)
    recently_valid = TokenBuckets(clock)
    cache, other_cache = KeyCache(30, recently_valid, clock), KeyCache(30, recently_valid, clock)
    cache.keep("known", RECORD, read_at=0)
    cache.keep("unknown", None, read_at=0)
    clock.now = 3600
    assert other_cache.was_recently_valid("known")
    assert not other_cache.was_recently_valid("unknown")
    assert other_cache.get("known") is None
    clock.now = 90_000
    assert not other_cache.was_recently_valid("known")


def test_flood_of_unknown_keys_does_not_evict_known_ones() -> None:
    cache = KeyCache(600, TokenBuckets(), FakeClock(0))
    cache.keep("known", RECORD, read_at=0)
    for number in range(10_500):
        cache.keep(f"invented {number}", None, read_at=0)
    assert len(cache._unknown) == 10_000
    assert cache.get("known") == RECORD
