"""Purging in steps, by command and in the background."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from structlog.testing import capture_logs

from inbox.background import BackgroundTask
from inbox.domain.events import NewEvent, random_event_id
from inbox.errors import StoreUnavailable
from inbox.server.gunicorn_config import _GunicornApp
from inbox.services.retention import Retention
from inbox.settings import Settings
from inbox.store.interface import EventStore
from inbox.store.sqlite import SQLiteStore
from tests.service import until

NOW_MS = 1_732_140_249_123


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(tmp_path / "inbox.db", 10)
    for expires_at_s, count in ((NOW_MS // 1000, 250), (NOW_MS // 1000 + 60, 3)):
        events = [NewEvent(random_event_id(), None, b"{}") for _ in range(count)]
        store.events.put("acme", events, NOW_MS - 1000, expires_at_s)
    yield store
    store.close()


def test_purge_deletes_in_steps_with_pauses(store: SQLiteStore) -> None:
    pauses: list[float] = []
    assert list(Retention(store.events, lambda: NOW_MS).purge(pauses.append)) == [100, 100, 50]
    assert len(pauses) == 2
    assert list(Retention(store.events, lambda: NOW_MS).purge(pauses.append)) == []
    assert store.events.export_events("acme", NOW_MS).count == 3


def test_background_task_purges_until_it_is_stopped(tmp_path: Path, store: SQLiteStore) -> None:
    purge = BackgroundTask("purge", Retention(store.events, lambda: NOW_MS).purge_until, interval_seconds=0.01)
    purge.start()
    until(lambda: count_rows(tmp_path) == 3)
    purge.stop()
    assert not purge._thread.is_alive()


def count_rows(folder: Path) -> int:
    with closing(apsw.Connection(f"{folder}/inbox.db")) as connection:
        return len(connection.execute("SELECT 1 FROM events").fetchall())


def test_failed_purge_is_retried(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, called_again = [], threading.Event()

    def fail(_self: EventStore, _now_ms: int, _limit: int) -> int:
        calls.append(1)
        if len(calls) > 1:
            called_again.set()
        raise StoreUnavailable("The database did not respond.")

    monkeypatch.setattr(type(store.events), "purge", fail)
    with capture_logs() as log:
        purge = BackgroundTask("purge", Retention(store.events, lambda: NOW_MS).purge_until, interval_seconds=0.01)
        purge.start()
        assert called_again.wait(10)
        purge.stop()
    assert {(line["event"], line["error"]) for line in log} == {("purge failed", "StoreUnavailable")}


def test_worker_starts_purge_and_flush_with_the_app(
    tmp_path: Path, metrics_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(BackgroundTask, "start", lambda background: started.append(background._name))
    monkeypatch.setattr(BackgroundTask, "stop", lambda _background: None)
    _GunicornApp(Settings(store=f"sqlite:///{tmp_path}/inbox.db"), metrics_folder, lambda: None).load()
    assert started == ["purge", "flush"]
