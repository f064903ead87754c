"""The embedded store, for what only it owns."""

import signal
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


@pytest.fixture(autouse=True)
def stops_are_heard_again() -> Iterator[None]:
    """A command that hears none any more is about to end, and a test run is not."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    while pending := signal.sigpending() - before:
        signal.sigwait(pending)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
