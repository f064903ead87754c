"""A database file that is moved, replaced, damaged or missing. `inbox.store.sqlite.files` and `.database`."""

import errno
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from pathlib import Path

import apsw
import pytest

from inbox.domain.events import DEFAULT_INBOX, Order, PageSize
from inbox.errors import StoreFull, StoreUnavailable
from inbox.store.sqlite import SQLiteStore
from inbox.store.sqlite.files import unavailable
from tests.unit import databases
from tests.unit.databases import COUNT_EVENTS, NOW_MS, create_crashed, query

MAX_DELIVERIES = 3
put = partial(databases.put, count=1)


def count_undelivered(store: SQLiteStore) -> int:
    return len(store.events.peek("acme", DEFAULT_INBOX, Order.OLDEST, PageSize(500, 10_000_000), NOW_MS).events)


CALLS = pytest.mark.parametrize("call", [put, count_undelivered, methodcaller("check")])
Call = Callable[[SQLiteStore], object]


@CALLS
def test_moved_file_is_noticed_at_once(store: SQLiteStore, store_path: Path, call: Call) -> None:
    put(store)
    count_undelivered(store)
    store_path.rename(store_path.with_suffix(".away"))
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=r"inbox\.db does not exist\. Check INBOX_STORE\.$"):
            call(store)
    assert not store_path.exists()
    store_path.with_suffix(".away").rename(store_path)
    call(store)
    store.close()


def test_file_that_replaces_the_store_is_used_from_then_on(
    store: SQLiteStore, store_path: Path, tmp_path: Path
) -> None:
    put(store)
    assert count_undelivered(store) == 1
    other = SQLiteStore(tmp_path / "other.db", MAX_DELIVERIES)
    for _ in range(3):
        put(other)
    other.close()
    for companion in ("-wal", "-shm"):
        Path(f"{store_path}{companion}").unlink()
    (tmp_path / "other.db").replace(store_path)
    assert count_undelivered(store) == 3
    # The first write still goes to the old file, and fails.
    with pytest.raises(StoreUnavailable):
        put(store)
    put(store)
    assert count_undelivered(store) == 4
    store.close()


@CALLS
def test_missing_store_is_not_created_while_it_is_in_use(store_path: Path, call: Call) -> None:
    store = SQLiteStore(store_path, MAX_DELIVERIES, create=False)
    with pytest.raises(StoreUnavailable, match=r"inbox\.db does not exist\. Check INBOX_STORE\.$"):
        call(store)
    assert not store_path.exists()
    store_path.touch()
    with pytest.raises(StoreUnavailable, match="is not a SQLite database"):
        call(store)
    assert store_path.stat().st_size == 0
    other = apsw.Connection(str(store_path))
    other.execute("CREATE TABLE t (a)")
    other.close()
    with pytest.raises(
        StoreUnavailable,
        match=r"inbox\.db is not a database of Polling Inbox\. Check INBOX_STORE, or run `inbox init` with",
    ):
        call(store)
    store_path.write_bytes(b"This is not a database. " * 100)
    with pytest.raises(
        StoreUnavailable, match=r"inbox\.db is not a SQLite database\. Check INBOX_STORE, or restore a backup"
    ):
        call(store)
    store_path.unlink()
    SQLiteStore(store_path, MAX_DELIVERIES).close()
    call(store)
    store.close()


def test_empty_file_in_place_of_the_store_does_not_destroy_the_log(store: SQLiteStore, store_path: Path) -> None:
    put(store)
    store_path.rename(store_path.with_suffix(".away"))
    store_path.touch()
    second_store = SQLiteStore(store_path, MAX_DELIVERIES, create=False)
    for call in (put, count_undelivered):
        with pytest.raises(StoreUnavailable):
            call(second_store)
    store_path.with_suffix(".away").rename(store_path)
    assert count_undelivered(second_store) == 1
    second_store.close()
    store.close()


@pytest.mark.parametrize("is_empty", [True, False])
@pytest.mark.parametrize("has_log", [True, False])
def test_store_is_not_created_beside_the_companions_of_another(store_path: Path, is_empty: bool, has_log: bool) -> None:
    first = SQLiteStore(store_path, MAX_DELIVERIES)
    put(first)
    if not has_log:
        # Opened again without a write, so the log is empty.
        first.close()
        first = SQLiteStore(store_path, MAX_DELIVERIES, create=False)
        assert count_undelivered(first) == 1
        assert Path(f"{store_path}-wal").stat().st_size == 0
    store_path.rename(store_path.with_suffix(".away"))
    if is_empty:
        store_path.touch()
    with pytest.raises(StoreUnavailable, match="missing or empty"):
        SQLiteStore(store_path, MAX_DELIVERIES)
    assert store_path.exists() == is_empty
    store_path.with_suffix(".away").rename(store_path)
    assert count_undelivered(first) == 1
    first.close()


def test_damaged_file_is_unavailable(store: SQLiteStore, store_path: Path) -> None:
    for _ in range(50):
        put(store)
    store.close()
    healthy = store_path.read_bytes()
    # Damages all pages except the first, which identifies the file as a database.
    store_path.write_bytes(healthy[:4096] + b"\xa5" * (len(healthy) - 4096))
    damaged_store = SQLiteStore(store_path, MAX_DELIVERIES, create=False)
    for call in (put, count_undelivered):
        with pytest.raises(StoreUnavailable, match=r"inbox\.db is damaged\. Restore a backup with `inbox restore`\.$"):
            call(damaged_store)
    damaged_store.close()
    store_path.write_bytes(healthy)
    healthy_store = SQLiteStore(store_path, MAX_DELIVERIES, create=False)
    assert count_undelivered(healthy_store) == 50
    healthy_store.close()


@pytest.mark.parametrize("table", ["a", "events"])
def test_database_of_another_program_is_not_changed(store_path: Path, table: str) -> None:
    query(store_path, f"CREATE TABLE {table} (b); SELECT 1")
    before = store_path.read_bytes()
    with pytest.raises(StoreUnavailable, match=r"inbox\.db is not a database of Polling Inbox\. Check INBOX_STORE\.$"):
        SQLiteStore(store_path, MAX_DELIVERIES)
    assert store_path.read_bytes() == before


@pytest.mark.parametrize("sql", ["", "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)"])
def test_file_without_tables_of_other_programs_becomes_a_store(store_path: Path, sql: str) -> None:
    store_path.touch()
    if sql:
        query(store_path, f"{sql}; SELECT 1")
    SQLiteStore(store_path, MAX_DELIVERIES).close()
    assert query(store_path, COUNT_EVENTS) == 0


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (apsw.BusyError(), "is locked by another process."),
        (apsw.FullError(), "cannot be written: the disk is full."),
        (apsw.IOError("disk I/O error"), "cannot be used: disk I/O error."),
        (apsw.NoMemError(), "cannot be used: the machine is out of memory."),
        (apsw.ReadOnlyError(), "cannot be written. Check the permissions of the file and its folder."),
        (
            apsw.CantOpenError("the file is not where it was opened"),
            "cannot be used: the file is not where it was opened.",
        ),
        (apsw.SQLError("table counters already exists"), "cannot be used: table counters already exists."),
        (PermissionError(errno.EACCES, "Permission denied"), "cannot be opened: Permission denied."),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_message_names_the_file_and_the_cause(store_path: Path, error: Exception, message: str) -> None:
    store_path.touch()
    assert str(unavailable(store_path, error)) == f"{store_path} {message}"
    assert isinstance(unavailable(store_path, error), StoreFull) == isinstance(error, apsw.FullError)


def test_name_that_is_too_long_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"x\.db cannot be opened: File name too long\.$"):
        SQLiteStore(tmp_path / f"{'x' * 300}.db", MAX_DELIVERIES)


def test_store_is_not_created_behind_a_link_beside_the_companions_of_another(store_path: Path, tmp_path: Path) -> None:
    create_crashed(store_path)
    link = tmp_path / "link.db"
    link.symlink_to(store_path)
    moved = store_path.rename(store_path.with_suffix(".away"))
    with pytest.raises(StoreUnavailable, match=r"inbox.db-wal beside it may hold events"):
        SQLiteStore(link, MAX_DELIVERIES)
    moved.rename(store_path)
    SQLiteStore(link, MAX_DELIVERIES).close()
    assert query(store_path, COUNT_EVENTS) == 3


def test_store_is_not_created_while_a_restore_replaces_it(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_crashed(store_path)
    touch = Path.touch

    def move_store_first(file: Path, mode: int) -> None:
        touch(Path(f"{store_path}-shm"))
        store_path.rename(store_path.with_suffix(".away"))
        touch(file, mode)

    log = Path(f"{store_path}-wal").read_bytes()
    monkeypatch.setattr(Path, "touch", move_store_first)
    with pytest.raises(StoreUnavailable, match="is missing or empty"):
        SQLiteStore(store_path, MAX_DELIVERIES)
    assert Path(f"{store_path}-wal").read_bytes() == log


def test_store_that_another_process_is_creating_is_opened(store_path: Path) -> None:
    store_path.touch()
    Path(f"{store_path}-journal").touch()
    SQLiteStore(store_path, MAX_DELIVERIES).close()
    assert query(store_path, COUNT_EVENTS) == 0
