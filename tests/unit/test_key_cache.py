"""What a process remembers of keys."""

from authorizer.resolver import KeyRecord, Principal
from inbox.auth.key_cache import KeyCache
from inbox.auth.token_buckets import TokenBuckets

RECORD = KeyRecord(Principal("acme", "Acme", True, "key_1", frozenset({"inbox:read"})))


class Timer:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_is_kept_is_remembered_for_its_time_and_no_longer() -> None:
    timer = Timer()
    cache = KeyCache(30, TokenBuckets(timer), timer)
    cache.keep("known", RECORD, read_at=0)
    cache.keep("unknown", None, read_at=0)
    for timer.now, remembered in ((29.9, True), (30.0, False)):
        assert (cache.get("known") is not None, cache.is_unknown("unknown")) == (remembered, remembered)


def test_the_latest_answer_counts() -> None:
    cache = KeyCache(30, TokenBuckets(), Timer())
    cache.keep("revoked", RECORD, read_at=0)
    cache.keep("revoked", None, read_at=0)
    assert cache.get("revoked") is None


def test_what_is_old_already_is_forgotten_earlier() -> None:
    timer = Timer()
    cache = KeyCache(30, TokenBuckets(timer), timer)
    cache.keep("known", RECORD, read_at=-10)
    timer.now = 19.9
    assert cache.get("known") == RECORD
    timer.now = 20.0
    assert cache.get("known") is None


def test_without_a_time_nothing_is_remembered() -> None:
    cache = KeyCache(0, TokenBuckets(), Timer())
    cache.keep("known", RECORD, read_at=0)
    cache.keep("unknown", None, read_at=0)
    assert cache.get("known") is None
    assert not cache.is_unknown("unknown")


def test_that_there_was_such_a_key_is_not_forgotten_so_soon() -> None:
    timer = Timer()
    cache = KeyCache(30, TokenBuckets(timer), timer)
    cache.keep("known", RECORD, read_at=0)
    cache.keep("unknown", None, read_at=0)
    timer.now = 3600
    assert cache.was_recently_valid("known")
    assert not cache.was_recently_valid("unknown")
    timer.now = 90_000
    assert not cache.was_recently_valid("known")


def test_that_there_was_such_a_key_is_known_to_all_processes() -> None:
    met = TokenBuckets()
    here, there = KeyCache(30, met), KeyCache(30, met)
    here.keep("known", RECORD, read_at=0)
    assert there.was_recently_valid("known")
    assert there.get("known") is None


def test_a_flood_of_unknown_keys_neither_grows_it_nor_pushes_known_ones_out() -> None:
    cache = KeyCache(600, TokenBuckets(), Timer())
    cache.keep("known", RECORD, read_at=0)
    for number in range(10_500):
        cache.keep(f"made up {number}", None, read_at=0)
    assert len(cache._unknown) == 10_000
    assert cache.get("known") == RECORD
