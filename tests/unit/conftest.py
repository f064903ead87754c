"""The embedded store, for what only it owns."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from inbox.store.sqlite import SQLiteStore
from tests.engines.harnesses import MAX_DELIVERIES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "inbox.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(path, MAX_DELIVERIES)
    yield store
    store.close()
