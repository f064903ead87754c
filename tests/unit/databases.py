"""Creates databases in the state after a backup, a crash or an earlier release."""

import os
import shutil
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from inbox.domain.events import NewEvent, random_event_id
from inbox.store.sqlite import SQLiteStore
from inbox.store.sqlite.database import Parameters
from inbox.store.sqlite.migrations import _run, _scripts

NOW_MS = 1_732_140_249_123
LATER_S = NOW_MS // 1000 + 3600
EVENTS = "SELECT count(*) FROM events"


def put(store: SQLiteStore, count: int = 50) -> None:
    events = [NewEvent(random_event_id(), None, b'{"a":"' + b"x" * 2000 + b'"}') for _ in range(count)]
    store.events.put("acme", events, NOW_MS, LATER_S)


def ignore(_done: int, _total: int) -> None:
    pass


def query(path: Path, sql: str) -> Any:
    with closing(apsw.Connection(str(path))) as connection:
        return connection.execute(sql).fetchall()[0][0]


def make_older(path: Path, version: int) -> None:
    """Creates a database with the schema of an earlier release."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "wal")
        _run(connection, _scripts()[:version])
        connection.pragma("user_version", version)


def damage(path: Path) -> None:
    healthy = path.read_bytes()
    path.write_bytes(healthy[:20_480] + b"\xa5" * 4_096 + healthy[24_576:])


def plan_of(store: SQLiteStore, sql: str, parameters: Parameters) -> list[str]:
    """Returns the steps of SQLite's query plan."""
    return [row[3] for row in store._database.read(f"EXPLAIN QUERY PLAN {sql}", parameters)]


def files_in(folder: Path) -> dict[str, bytes]:
    """Returns the contents of the files by name."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def note_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list of the renames, links and syncs that follow."""
    steps: list[str] = []
    rename, link, sync = Path.rename, os.link, os.fsync

    def note_rename(old: Path, new: Path) -> Path:
        steps.append(f"rename {old.name}")
        return rename(old, new)

    def note_link(old: Path, new: Path) -> None:
        steps.append(f"link {old.name}")
        link(old, new)

    def note_sync(descriptor: int) -> None:
        steps.append("sync folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file")
        sync(descriptor)

    monkeypatch.setattr(Path, "rename", note_rename)
    monkeypatch.setattr(os, "link", note_link)
    monkeypatch.setattr(os, "fsync", note_sync)
    return steps


def crashed(path: Path, aside: Path) -> None:
    """Creates a database in the state after a crash, with events in its log."""
    store = SQLiteStore(path, 3)
    put(store, 3)
    aside.mkdir()
    for companion in ("", "-wal"):
        shutil.copy(f"{path}{companion}", aside)
    store.close()
    path.unlink()
    for left in aside.iterdir():
        left.rename(path.parent / left.name)


def stop_in_a_transaction(path: Path, aside: Path) -> None:
    """Creates a database without a log in the state after a crash in a transaction.

    The file has half of the transaction, and a journal has the old pages.
    """
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "delete")
        connection.pragma("cache_size", 1)
        connection.execute("BEGIN; DELETE FROM events")
        aside.mkdir()
        for companion in ("", "-journal"):
            shutil.copy(f"{path}{companion}", aside)
        connection.execute("ROLLBACK")
    for left in aside.iterdir():
        left.replace(path.parent / left.name)
