"""The cache of a tenant's inboxes: `InboxCache` in `inbox.store.dynamodb.inboxes`."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from inbox.errors import StoreUnavailable
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.inboxes import InboxCache, TenantInboxes, _CacheEntry

CACHE_SECONDS = 1000.0
NO_NAMED_INBOXES = TenantInboxes(default_enabled=True, named=[])


class _FakeConnection:
    """A fake connection that counts reads, and can delay or fail them."""

    def __init__(self) -> None:
        self.reads = 0
        self.on_read: Callable[[], object] = lambda: None

    def table(self, name: str) -> str:
        return name

    def query_items(self, _table: str, **_: Any) -> list[dict[str, Any]]:
        self.reads += 1
        self.on_read()
        return []


@pytest.fixture
def connection() -> _FakeConnection:
    return _FakeConnection()


@pytest.fixture
def cache(connection: _FakeConnection) -> InboxCache:
    return InboxCache(cast(Connection, connection), CACHE_SECONDS)


def make_entry_old(cache: InboxCache) -> None:
    cache._cache["acme"] = _CacheEntry(time.monotonic() - 0.9 * CACHE_SECONDS, NO_NAMED_INBOXES)


def test_cached_inboxes_are_not_read_again(cache: InboxCache, connection: _FakeConnection) -> None:
    for _ in range(3):
        cache.get("acme")
    assert connection.reads == 1


def test_expired_entry_is_read_again(cache: InboxCache, connection: _FakeConnection) -> None:
    cache._cache["acme"] = _CacheEntry(time.monotonic() - CACHE_SECONDS, NO_NAMED_INBOXES)
    cache.get("acme")
    assert connection.reads == 1


def test_one_thread_refreshes_an_old_entry_while_others_use_it(cache: InboxCache, connection: _FakeConnection) -> None:
    make_entry_old(cache)
    is_reading, resume = threading.Event(), threading.Event()

    def delay() -> None:
        is_reading.set()
        assert resume.wait(10)

    connection.on_read = delay
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(cache.get, "acme")
        assert is_reading.wait(10)
        for _ in range(3):
            cache.get("acme")
        resume.set()
        first.result(10)
    cache.get("acme")
    assert connection.reads == 1


def test_failed_refresh_leaves_the_entry_usable(cache: InboxCache, connection: _FakeConnection) -> None:
    def fail() -> None:
        raise StoreUnavailable

    make_entry_old(cache)
    connection.on_read = fail
    with pytest.raises(StoreUnavailable):
        cache.get("acme")
    assert cache.get("acme") == NO_NAMED_INBOXES
