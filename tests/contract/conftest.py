"""Every engine behind the same suite. A new one costs a harness and a line in ENGINES."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from inbox.store.port import Store
from inbox.store.sqlite import SQLiteStore


class Harness(Protocol):
    store: Store

    def another(self) -> Store:
        """The same store as another process would open it."""

    def reopen(self) -> None:
        """As after a restart: what was not kept is gone."""

    def settle(self) -> None:
        """Waits until a lagging index has caught up."""

    def close(self) -> None: ...


class SQLiteHarness:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "inbox.db"
        self._others: list[SQLiteStore] = []
        self.store: Store = SQLiteStore(self._path)

    def another(self) -> Store:
        self._others.append(SQLiteStore(self._path))
        return self._others[-1]

    def reopen(self) -> None:
        self.store.close()
        self.store = SQLiteStore(self._path)

    def settle(self) -> None:
        """SQLite's indexes never lag."""

    def close(self) -> None:
        for store in (self.store, *self._others):
            store.close()


ENGINES: dict[str, Callable[[Path], Harness]] = {"sqlite": SQLiteHarness}


@pytest.fixture(params=ENGINES, ids=str)
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    harness = ENGINES[request.param](tmp_path)
    yield harness
    harness.close()


@pytest.fixture
def store(harness: Harness) -> Store:
    return harness.store
