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

LONG = 1000.0
NOTHING_NAMED = TenantInboxes(default_enabled=True, named=[])


class _Table:
    """A fake connection that counts reads, and can delay or fail them."""

    def __init__(self) -> None:
        self.reads = 0
        self.meanwhile: Callable[[], object] = lambda: None

    def table(self, name: str) -> str:
        return name

    def query_items(self, _table: str, **_: Any) -> list[dict[str, Any]]:
        self.reads += 1
        self.meanwhile()
        return []


@pytest.fixture
def table() -> _Table:
    return _Table()


@pytest.fixture
def cache(table: _Table) -> InboxCache:
    return InboxCache(cast(Connection, table), LONG)


def age(cache: InboxCache) -> None:
    cache._cache["acme"] = _CacheEntry(time.monotonic() - 0.9 * LONG, NOTHING_NAMED)


def test_cached_inboxes_are_not_read_again(cache: InboxCache, table: _Table) -> None:
    for _ in range(3):
        cache.get("acme")
    assert table.reads == 1


def test_expired_entry_is_read_again(cache: InboxCache, table: _Table) -> None:
    cache._cache["acme"] = _CacheEntry(time.monotonic() - LONG, NOTHING_NAMED)
    cache.get("acme")
    assert table.reads == 1


def test_one_thread_refreshes_an_old_entry_while_others_use_it(cache: InboxCache, table: _Table) -> None:
    age(cache)
    is_reading, resume = threading.Event(), threading.Event()

    def delay() -> None:
        is_reading.set()
        assert resume.wait(10)

    table.meanwhile = delay
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(cache.get, "acme")
        assert is_reading.wait(10)
        for _ in range(3):
            cache.get("acme")
        resume.set()
        first.result(10)
    cache.get("acme")
    assert table.reads == 1


def test_failed_refresh_leaves_the_entry_usable(cache: InboxCache, table: _Table) -> None:
    def fail() -> None:
        raise StoreUnavailable

    age(cache)
    table.meanwhile = fail
    with pytest.raises(StoreUnavailable):
        cache.get("acme")
    assert cache.get("acme") == NOTHING_NAMED
