"""A tenant's inboxes, remembered for a moment: `inbox.store.dynamodb.inboxes`."""

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
    """In the place of a connection: counts who reads, and can keep them waiting or fail."""

    def __init__(self) -> None:
        self.reads = 0
        self.meanwhile: Callable[[], object] = lambda: None

    def table(self, name: str) -> str:
        return name

    def query_items(self, **_: Any) -> list[dict[str, Any]]:
        self.reads += 1
        self.meanwhile()
        return []


@pytest.fixture
def table() -> _Table:
    return _Table()


@pytest.fixture
def definitions(table: _Table) -> InboxCache:
    return InboxCache(cast(Connection, table), LONG)


def grow_old(definitions: InboxCache) -> None:
    definitions._cache["acme"] = _CacheEntry(time.monotonic() - 0.9 * LONG, NOTHING_NAMED)


def test_what_is_known_is_not_read_again(definitions: InboxCache, table: _Table) -> None:
    for _ in range(3):
        definitions.get("acme")
    assert table.reads == 1


def test_what_may_not_be_remembered_any_more_is_read_again(definitions: InboxCache, table: _Table) -> None:
    definitions._cache["acme"] = _CacheEntry(time.monotonic() - LONG, NOTHING_NAMED)
    definitions.get("acme")
    assert table.reads == 1


def test_what_grows_old_is_read_anew_by_one_while_the_others_go_by_it(definitions: InboxCache, table: _Table) -> None:
    grow_old(definitions)
    is_reading, go_on = threading.Event(), threading.Event()

    def keep_waiting() -> None:
        is_reading.set()
        assert go_on.wait(10)

    table.meanwhile = keep_waiting
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(definitions.get, "acme")
        assert is_reading.wait(10)
        for _ in range(3):
            definitions.get("acme")
        go_on.set()
        first.result(10)
    definitions.get("acme")
    assert table.reads == 1


def test_a_read_that_fails_keeps_nobody_from_what_is_known(definitions: InboxCache, table: _Table) -> None:
    def fail() -> None:
        raise StoreUnavailable

    grow_old(definitions)
    table.meanwhile = fail
    with pytest.raises(StoreUnavailable):
        definitions.get("acme")
    assert definitions.get("acme") == NOTHING_NAMED
