"""Databases as a backup, a crash or an earlier release leaves them."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from inbox.domain.events import NewEvent, random_event_id
from inbox.store.sqlite import SQLiteStore
from inbox.store.sqlite.backup import back_up
from inbox.store.sqlite.migrations import _run, _scripts

NOW_MS = 1_732_140_249_123
LATER_S = NOW_MS // 1000 + 3600
EVENTS = "SELECT count(*) FROM events"


def put(store: SQLiteStore, count: int = 50) -> None:
    events = [NewEvent(random_event_id(), None, b'{"a":"' + b"x" * 2000 + b'"}') for _ in range(count)]
    store.events.put("acme", events, NOW_MS, LATER_S)


def ignore(_done: int, _total: int) -> None:
    pass


def ask(path: Path, sql: str) -> Any:
    with closing(apsw.Connection(str(path))) as connection:
        return connection.execute(sql).fetchall()[0][0]


def make_older(path: Path, version: int) -> None:
    """As an earlier release left it."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "wal")
        _run(connection, _scripts()[:version])
        connection.pragma("user_version", version)


def damage(path: Path) -> None:
    healthy = path.read_bytes()
    path.write_bytes(healthy[:20_480] + b"\xa5" * 4_096 + healthy[24_576:])


def back_up_50(path: Path, store: SQLiteStore, folder: Path) -> Path:
    """A backup of 50 events. There have come 7 more since, and the store is closed."""
    folder.mkdir()
    put(store, 50)
    back_up(path, folder / "inbox-1.db", ignore)
    put(store, 7)
    store.close()
    return folder / "inbox-1.db"


def files_in(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def crashed(path: Path, aside: Path) -> None:
    """A database as a crash leaves it, with events in its log."""
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
    """A database without a log as a crash leaves it: half a transaction in the file, what was there in a journal."""
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
