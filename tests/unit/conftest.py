"""Fixtures for SQLite stores, metrics and stop signals."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import values
from prometheus_client.values import MutexValue

from inbox.store.sqlite import SQLiteStore
from tests.engines.harnesses import MAX_DELIVERIES


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "inbox.db"


@pytest.fixture
def store(store_path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(store_path, MAX_DELIVERIES)
    yield store
    store.close()


@pytest.fixture
def metrics_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A path for a metrics folder. After the test, prometheus_client counts in memory again."""
    folder = tmp_path / "metrics"
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(folder))
    monkeypatch.setattr(values, "ValueClass", MutexValue)
    yield folder
    values.close_all_multiprocess_files()


@pytest.fixture(autouse=True)
def unblock_stop_signals() -> Iterator[None]:
    """Unblocks stop signals after a test, because a command leaves them blocked until its process ends."""
    blocked_before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    while pending := signal.sigpending() - blocked_before:
        signal.sigwait(pending)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked_before)
