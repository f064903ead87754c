"""Databases in the state after a crash, damage or an earlier release, and functions that inspect them."""

import os
import shutil
import stat
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest

from inbox.domain.events import NewEvent, random_event_id
from inbox.store.sqlite import SQLiteStore
from inbox.store.sqlite.database import Parameters
from inbox.store.sqlite.migrations import _run, _scripts

NOW_MS = 1_732_140_249_123
LATER_S = NOW_MS // 1000 + 3600
COUNT_EVENTS = "SELECT count(*) FROM events"


def put(store: SQLiteStore, count: int = 50) -> None:
    events = [NewEvent(random_event_id(), None, b'{"a":"' + b"x" * 2000 + b'"}') for _ in range(count)]
    store.events.put("acme", events, NOW_MS, LATER_S)


def ignore_progress(_done: int, _total: int) -> None:
    pass


def query(path: Path, sql: str) -> Any:
    """Returns the first value of the result."""
    with closing(apsw.Connection(str(path))) as connection:
        return connection.execute(sql).fetchall()[0][0]


def create_older(path: Path, schema_version: int) -> None:
    """Creates a database with the schema of an earlier release."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "wal")
        _run(connection, _scripts()[:schema_version])
        connection.pragma("user_version", schema_version)


def damage(path: Path) -> None:
    healthy = path.read_bytes()
    path.write_bytes(healthy[:20_480] + b"\xa5" * 4_096 + healthy[24_576:])


def explain(store: SQLiteStore, sql: str, parameters: Parameters) -> list[str]:
    """Returns the steps of SQLite's query plan."""
    return [row[3] for row in store._database.read(f"EXPLAIN QUERY PLAN {sql}", parameters)]


def read_files(folder: Path) -> dict[str, bytes]:
    """Returns the contents of the folder's files by name."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def record_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list to which every later rename, link and sync is appended."""
    steps: list[str] = []
    rename, link, sync = Path.rename, os.link, os.fsync

    def record_rename(old: Path, new: Path) -> Path:
        steps.append(f"rename {old.name}")
        return rename(old, new)

    def record_link(old: Path, new: Path) -> None:
        steps.append(f"link {old.name}")
        link(old, new)

    def record_sync(descriptor: int) -> None:
        steps.append("sync folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file")
        sync(descriptor)

    monkeypatch.setattr(Path, "rename", record_rename)
    monkeypatch.setattr(os, "link", record_link)
    monkeypatch.setattr(os, "fsync", record_sync)
    return steps


def create_crashed(path: Path) -> None:
    """Creates a database in the state after a crash, with 3 events in its log."""
    with TemporaryDirectory(dir=path.parent) as copies:
        store = SQLiteStore(path, 3)
        put(store, 3)
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", copies)
        store.close()
        path.unlink()
        for copy in Path(copies).iterdir():
            copy.rename(path.parent / copy.name)


def crash_in_transaction(path: Path) -> None:
    """Puts an existing database into the state after a crash in a transaction that deletes all events.

    The database has half of the transaction, no log, and a journal with the old pages.
    """
    with TemporaryDirectory(dir=path.parent) as copies:
        with closing(apsw.Connection(str(path))) as connection:
            connection.pragma("journal_mode", "delete")
            connection.pragma("cache_size", 1)
            connection.execute("BEGIN; DELETE FROM events")
            for suffix in ("", "-journal"):
                shutil.copy(f"{path}{suffix}", copies)
            connection.execute("ROLLBACK")
        for copy in Path(copies).iterdir():
            copy.replace(path.parent / copy.name)
