"""The cache of key records. tests/unit/test_authenticator.py tests its times."""

from authorizer.resolver import KeyRecord, Principal
from inbox.auth.key_cache import KeyCache
from inbox.auth.token_buckets import TokenBuckets

RECORD = KeyRecord(Principal("acme", "Acme", True, "key_1", frozenset({"inbox:read"})))


class Timer:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_latest_read_replaces_an_earlier_one() -> None:
    cache = KeyCache(30, TokenBuckets(), Timer())
    cache.keep("revoked", RECORD, read_at=0)
    cache.keep("revoked", None, read_at=0)
    assert cache.get("revoked") is None


def test_cache_of_zero_seconds_is_disabled() -> None:
    cache = KeyCache(0, TokenBuckets(), Timer())
    cache.keep("known", RECORD, read_at=0)
    cache.keep("unknown", None, read_at=0)
    assert cache.get("known") is None
    assert not cache.is_unknown("unknown")


def test_all_processes_remember_for_a_day_that_a_key_was_valid() -> None:
    timer = Timer()
    shared = TokenBuckets(timer)
    cache, other_cache = KeyCache(30, shared, timer), KeyCache(30, shared, timer)
    cache.keep("known", RECORD, read_at=0)
    cache.keep("unknown", None, read_at=0)
    timer.now = 3600
    assert other_cache.was_recently_valid("known")
    assert not other_cache.was_recently_valid("unknown")
    assert other_cache.get("known") is None
    timer.now = 90_000
    assert not other_cache.was_recently_valid("known")


def test_flood_of_unknown_keys_does_not_evict_known_ones() -> None:
    cache = KeyCache(600, TokenBuckets(), Timer())
    cache.keep("known", RECORD, read_at=0)
    for number in range(10_500):
        cache.keep(f"invented {number}", None, read_at=0)
    assert len(cache._unknown) == 10_000
    assert cache.get("known") == RECORD
