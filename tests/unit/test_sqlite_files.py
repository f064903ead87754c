"""A file that is taken away, replaced or damaged while it is in use."""

import uuid
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from inbox.domain.events import DEFAULT_INBOX, NewEvent, Order, PageSize
from inbox.errors import StoreUnavailable
from inbox.store.sqlite import SQLiteStore

NOW = 1_732_140_249_123
LATER = NOW // 1000 + 3600
MAX_DELIVERIES = 3


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "inbox.db"


@pytest.fixture
def store(path: Path) -> SQLiteStore:
    return SQLiteStore(path, MAX_DELIVERIES)


def put(store: SQLiteStore) -> None:
    event = NewEvent(str(uuid.uuid4()), None, b'{"a":"' + b"x" * 2000 + b'"}')
    store.events.put("acme", [event], NOW, LATER)


def count(store: SQLiteStore) -> int:
    return len(store.events.peek("acme", DEFAULT_INBOX, Order.OLDEST, PageSize(500, 10_000_000), NOW).events)


CALLS = pytest.mark.parametrize("call", [put, count, SQLiteStore.check])
Call = Callable[[SQLiteStore], object]


@CALLS
def test_a_file_that_is_taken_away_is_missed_at_once(store: SQLiteStore, path: Path, call: Call) -> None:
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


def test_another_file_in_its_place_is_used_from_then_on(store: SQLiteStore, path: Path, tmp_path: Path) -> None:
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
    # This one went into the old file.
    with pytest.raises(StoreUnavailable):
        put(store)
    put(store)
    assert count(store) == 4
    store.close()


@CALLS
def test_a_store_that_was_made_is_not_made_again(path: Path, call: Call) -> None:
    store = SQLiteStore(path, MAX_DELIVERIES, made=True)
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


def test_an_empty_file_in_its_place_does_not_cost_the_log(store: SQLiteStore, path: Path) -> None:
    put(store)
    path.rename(path.with_suffix(".away"))
    path.touch()
    newcomer = SQLiteStore(path, MAX_DELIVERIES, made=True)
    for call in (put, count):
        with pytest.raises(StoreUnavailable):
            call(newcomer)
    path.with_suffix(".away").rename(path)
    assert count(newcomer) == 1
    newcomer.close()
    store.close()


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("has_log", [True, False])
def test_no_file_is_made_beside_what_belongs_to_another(path: Path, is_there: bool, has_log: bool) -> None:
    first = SQLiteStore(path, MAX_DELIVERIES)
    put(first)
    if not has_log:
        # Another start, after which nothing has been written.
        first.close()
        first = SQLiteStore(path, MAX_DELIVERIES, made=True)
        assert count(first) == 1
        assert Path(f"{path}-wal").stat().st_size == 0
    path.rename(path.with_suffix(".away"))
    if is_there:
        path.touch()
    with pytest.raises(StoreUnavailable, match="missing or empty"):
        SQLiteStore(path, MAX_DELIVERIES)
    assert path.exists() == is_there
    path.with_suffix(".away").rename(path)
    assert count(first) == 1
    first.close()


def test_a_damaged_file_is_unavailable(store: SQLiteStore, path: Path) -> None:
    for _ in range(50):
        put(store)
    store.close()
    healthy = path.read_bytes()
    # All but the first page, which tells what kind of file it is.
    path.write_bytes(healthy[:4096] + b"\xa5" * (len(healthy) - 4096))
    damaged = SQLiteStore(path, MAX_DELIVERIES, made=True)
    for call in (put, count):
        with pytest.raises(StoreUnavailable, match="CorruptError"):
            call(damaged)
    damaged.close()
    path.write_bytes(healthy)
    sound = SQLiteStore(path, MAX_DELIVERIES, made=True)
    assert count(sound) == 50
    sound.close()


def test_a_path_that_no_file_can_have_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="OSError"):
        SQLiteStore(tmp_path / f"{'x' * 300}.db", MAX_DELIVERIES)
