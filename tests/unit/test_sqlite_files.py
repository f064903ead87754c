"""A database file that is moved, replaced, damaged or missing. `inbox.store.sqlite.files` and `.database`."""

from collections.abc import Callable
from functools import partial
from operator import methodcaller
from pathlib import Path

import apsw
import pytest

from inbox.domain.events import DEFAULT_INBOX, Order, PageSize
from inbox.errors import StoreUnavailable
from inbox.store.sqlite import SQLiteStore
from tests.unit import databases
from tests.unit.databases import EVENTS, NOW_MS, ask, crashed

MAX_DELIVERIES = 3
put = partial(databases.put, count=1)


def count(store: SQLiteStore) -> int:
    return len(store.events.peek("acme", DEFAULT_INBOX, Order.OLDEST, PageSize(500, 10_000_000), NOW_MS).events)


CALLS = pytest.mark.parametrize("call", [put, count, methodcaller("check")])
Call = Callable[[SQLiteStore], object]


@CALLS
def test_moved_file_is_noticed_at_once(store: SQLiteStore, path: Path, call: Call) -> None:
    put(store)
    count(store)
    path.rename(path.with_suffix(".away"))
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="CantOpenError"):
            call(store)
    assert not path.exists()
    path.with_suffix(".away").rename(path)
    call(store)
    store.close()


def test_file_that_replaces_the_store_is_used_from_then_on(store: SQLiteStore, path: Path, tmp_path: Path) -> None:
    put(store)
    assert count(store) == 1
    other = SQLiteStore(tmp_path / "other.db", MAX_DELIVERIES)
    for _ in range(3):
        put(other)
    other.close()
    for companion in ("-wal", "-shm"):
        Path(f"{path}{companion}").unlink()
    (tmp_path / "other.db").replace(path)
    assert count(store) == 3
    # The first write still goes to the old file, and fails.
    with pytest.raises(StoreUnavailable):
        put(store)
    put(store)
    assert count(store) == 4
    store.close()


@CALLS
def test_missing_store_is_not_created_while_it_is_in_use(path: Path, call: Call) -> None:
    store = SQLiteStore(path, MAX_DELIVERIES, create=False)
    with pytest.raises(StoreUnavailable, match="CantOpenError"):
        call(store)
    assert not path.exists()
    path.touch()
    with pytest.raises(StoreUnavailable, match="empty"):
        call(store)
    assert path.stat().st_size == 0
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE t (a)")
    other.close()
    with pytest.raises(StoreUnavailable, match="inbox init"):
        call(store)
    path.write_bytes(b"This is not a database. " * 100)
    with pytest.raises(StoreUnavailable, match="NotADBError"):
        call(store)
    path.unlink()
    SQLiteStore(path, MAX_DELIVERIES).close()
    call(store)
    store.close()


def test_empty_file_in_place_of_the_store_does_not_cost_the_log(store: SQLiteStore, path: Path) -> None:
    put(store)
    path.rename(path.with_suffix(".away"))
    path.touch()
    newcomer = SQLiteStore(path, MAX_DELIVERIES, create=False)
    for call in (put, count):
        with pytest.raises(StoreUnavailable):
            call(newcomer)
    path.with_suffix(".away").rename(path)
    assert count(newcomer) == 1
    newcomer.close()
    store.close()


@pytest.mark.parametrize("is_empty", [True, False])
@pytest.mark.parametrize("has_log", [True, False])
def test_store_is_not_created_beside_the_companions_of_another(path: Path, is_empty: bool, has_log: bool) -> None:
    first = SQLiteStore(path, MAX_DELIVERIES)
    put(first)
    if not has_log:
        # Opened again without a write, so the log is empty.
        first.close()
        first = SQLiteStore(path, MAX_DELIVERIES, create=False)
        assert count(first) == 1
        assert Path(f"{path}-wal").stat().st_size == 0
    path.rename(path.with_suffix(".away"))
    if is_empty:
        path.touch()
    with pytest.raises(StoreUnavailable, match="missing or empty"):
        SQLiteStore(path, MAX_DELIVERIES)
    assert path.exists() == is_empty
    path.with_suffix(".away").rename(path)
    assert count(first) == 1
    first.close()


def test_damaged_file_is_unavailable(store: SQLiteStore, path: Path) -> None:
    for _ in range(50):
        put(store)
    store.close()
    healthy = path.read_bytes()
    # Damages all pages except the first, which identifies the file as a database.
    path.write_bytes(healthy[:4096] + b"\xa5" * (len(healthy) - 4096))
    damaged = SQLiteStore(path, MAX_DELIVERIES, create=False)
    for call in (put, count):
        with pytest.raises(StoreUnavailable, match="CorruptError"):
            call(damaged)
    damaged.close()
    path.write_bytes(healthy)
    sound = SQLiteStore(path, MAX_DELIVERIES, create=False)
    assert count(sound) == 50
    sound.close()


def test_name_that_is_too_long_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="OSError"):
        SQLiteStore(tmp_path / f"{'x' * 300}.db", MAX_DELIVERIES)


def test_store_is_not_created_behind_a_link_beside_the_companions_of_another(path: Path, tmp_path: Path) -> None:
    crashed(path, tmp_path / "aside")
    link = tmp_path / "link.db"
    link.symlink_to(path)
    aside = path.rename(path.with_suffix(".away"))
    with pytest.raises(StoreUnavailable, match=r"inbox.db-wal beside it may hold events"):
        SQLiteStore(link, MAX_DELIVERIES)
    aside.rename(path)
    SQLiteStore(link, MAX_DELIVERIES).close()
    assert ask(path, EVENTS) == 3


def test_store_is_not_created_while_a_restore_replaces_it(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed(path, tmp_path / "aside")
    touch = Path.touch

    def put_aside_first(file: Path, mode: int) -> None:
        touch(Path(f"{path}-shm"))
        path.rename(path.with_suffix(".away"))
        touch(file, mode)

    log = Path(f"{path}-wal").read_bytes()
    monkeypatch.setattr(Path, "touch", put_aside_first)
    with pytest.raises(StoreUnavailable, match="is missing or empty"):
        SQLiteStore(path, MAX_DELIVERIES)
    assert Path(f"{path}-wal").read_bytes() == log


def test_store_that_another_process_is_creating_is_opened(path: Path) -> None:
    path.touch()
    Path(f"{path}-journal").touch()
    SQLiteStore(path, MAX_DELIVERIES).close()
    assert ask(path, EVENTS) == 0
