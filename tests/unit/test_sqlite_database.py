"""Durability, migrations, group commits and full disks. `inbox.store.sqlite.database` and `.group_commit`."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from inbox.domain.events import DEFAULT_INBOX, Event, ExportedEvent, NewEvent, PageSize, Status, random_event_id
from inbox.domain.inboxes import Inbox
from inbox.errors import StoreFull, StoreUnavailable
from inbox.store.sqlite import SQLiteStore, database
from inbox.store.sqlite.database import Database
from tests.unit.databases import LATER_S, NOW_MS, create_older

MAX_DELIVERIES = 3


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "inbox.db"


def new_event(payload_bytes: int = 0) -> NewEvent:
    return NewEvent(random_event_id(), None, b'"' + b"x" * payload_bytes + b'"')


def put(store: SQLiteStore, payload_bytes: int = 0) -> None:
    store.events.put("acme", [new_event(payload_bytes)], NOW_MS, LATER_S)


def claim(store: SQLiteStore) -> list[Event]:
    return store.events.claim("acme", DEFAULT_INBOX, PageSize(99, 1_000_000), NOW_MS).events


def fail(connection: apsw.Connection) -> None:
    connection.execute("DELETE FROM events")
    raise ZeroDivisionError


def interrupt(_connection: apsw.Connection) -> None:
    raise KeyboardInterrupt


def test_sqlite_is_new_enough_for_two_writers() -> None:
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)


def test_every_connection_syncs_every_commit(store: SQLiteStore) -> None:
    store.check()
    store.tenants.all()
    connections = store._database._connections
    assert len(connections) == 2
    for connection in connections:
        assert connection.pragma("journal_mode") == "wal"
        assert connection.pragma("synchronous") == 2
        assert (connection.pragma("fullfsync"), connection.pragma("checkpoint_fullfsync")) == (1, 1)


def test_events_of_an_earlier_release_are_migrated(store_path: Path) -> None:
    store_path.parent.mkdir()
    create_older(store_path, 2)
    old = apsw.Connection(str(store_path))
    insert = """
        INSERT INTO events (tenant_id, event_id, event_type, timestamp_ms, status, deliveries, delivered_at_ms,
                            fingerprint, payload, expires_at_s)
        VALUES ('acme', ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
    for row in (
        ("first", "order.created", NOW_MS, "delivered", 1, NOW_MS + 5, b"print", '{"n":1.0}', LATER_S),
        ("second", None, NOW_MS + 1, "undelivered", 0, None, None, '{"n":2}', LATER_S),
        ("erased", None, NOW_MS + 1, "undelivered", 0, None, None, "{}", LATER_S),
    ):
        old.execute(insert, row)
    old.execute("DELETE FROM events WHERE event_id = 'erased'")
    old.close()

    store = SQLiteStore(store_path, MAX_DELIVERIES)
    delivered = Event("first", "order.created", NOW_MS, Status.DELIVERED, 1, NOW_MS + 5, b'{"n":1.0}')
    undelivered = Event("second", None, NOW_MS + 1, Status.UNDELIVERED, 0, None, b'{"n":2}')
    assert list(store.events.export_events("acme", NOW_MS).events) == [
        ExportedEvent(1, delivered, b"print", LATER_S),
        ExportedEvent(2, undelivered, None, LATER_S),
    ]
    assert [event.event_id for event in claim(store)] == ["second"]
    # The number of the erased event is not used again.
    put(store)
    assert [record.number for record in store.events.export_events("acme", NOW_MS).events] == [1, 2, 4]
    store.close()


def test_database_can_be_created_by_several_stores_at_the_same_time(store_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: SQLiteStore(store_path, MAX_DELIVERIES), range(8)))
    for store in stores:
        store.close()


def test_database_of_a_newer_release_is_refused(store_path: Path, store: SQLiteStore) -> None:
    store._database.write(lambda connection: connection.execute("PRAGMA user_version = 999"))
    with pytest.raises(StoreUnavailable, match="newer release"):
        SQLiteStore(store_path, MAX_DELIVERIES)


@contextmanager
def group_writes(store: SQLiteStore, size: int) -> Iterator[ThreadPoolExecutor]:
    """Yields a pool for `size` writes, and holds the writer until all of them wait in its queue."""
    started, released = threading.Event(), threading.Event()

    def hold(_connection: apsw.Connection) -> None:
        started.set()
        released.wait(10)

    with ThreadPoolExecutor(size + 1) as pool:
        leader = pool.submit(store._database.write, hold)
        assert started.wait(10)
        yield pool
        deadline = time.monotonic() + 10
        while len(store._database._writer._queue) < size:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        released.set()
    leader.result()


def test_writes_that_wait_share_a_commit(store: SQLiteStore) -> None:
    commits: list[int] = []

    def on_commit() -> bool:
        commits.append(1)
        return False

    store._database.write(lambda connection: connection.set_commit_hook(on_commit))
    commits.clear()
    with group_writes(store, 10) as pool:
        for _ in range(10):
            pool.submit(put, store)
    assert len(commits) == 2, "One commit of the write that blocked the queue, and one of the ten others"
    assert len(claim(store)) == 10


def test_failed_write_does_not_undo_the_others_of_its_group(store: SQLiteStore) -> None:
    put(store)
    with group_writes(store, 3) as pool:
        writes = [pool.submit(put, store), pool.submit(store._database.write, fail), pool.submit(put, store)]
    assert [type(write.exception()) for write in writes] == [type(None), ZeroDivisionError, type(None)]
    assert len(claim(store)) == 3


def test_interrupted_write_fails_its_group_and_leaves_the_writer_usable(store: SQLiteStore) -> None:
    with pytest.raises(KeyboardInterrupt):
        store._database.write(interrupt)
    with group_writes(store, 3) as pool:
        writes = [pool.submit(put, store), pool.submit(store._database.write, interrupt), pool.submit(put, store)]
    assert [type(write.exception()) for write in writes] == [KeyboardInterrupt] * 3
    put(store)
    assert len(claim(store)) == 1


def test_full_database_is_unavailable_and_recovers(store: SQLiteStore) -> None:
    put(store)
    writer = store._database._writer._connection
    assert writer is not None
    writer.pragma("max_page_count", writer.pragma("page_count") + 1)
    with pytest.raises(StoreUnavailable):
        put(store, 50_000)
    writer.pragma("max_page_count", 1_000_000)

    put(store)
    assert len(claim(store)) == 2


def test_insert_without_space_does_not_fail_the_erasure_in_its_group(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    erased = new_event()
    store.events.put("acme", [erased], NOW_MS, LATER_S)
    pages = store._database.write(lambda connection: connection.pragma("page_count"))

    def allocate(connection: apsw.Connection) -> None:
        if connection.pragma("page_count") > pages:
            raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(store._database._disk_space, "allocate", allocate)
    with group_writes(store, 3) as pool:
        insert = pool.submit(put, store, 50_000)
        erasure = pool.submit(store.events.erase, "acme", erased.event_id, NOW_MS)
        failing = pool.submit(store._database.write, fail)
    assert isinstance(insert.exception(), StoreFull)
    assert isinstance(failing.exception(), ZeroDivisionError)
    assert erasure.result() is True
    assert store.events.export_events("acme", NOW_MS).count == 0


def test_deletion_without_space_for_its_log_deletes_fewer_rows_at_once(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.inboxes.save("acme", Inbox("crm", None, NOW_MS))
    store.events.put("acme", [new_event() for _ in range(33)], NOW_MS, LATER_S)
    changes_before = 0

    def begin(connection: apsw.Connection) -> None:
        nonlocal changes_before
        changes_before = connection.total_changes()

    def allocate(connection: apsw.Connection) -> None:
        if connection.total_changes() - changes_before > 7:
            raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(store._database._disk_space, "begin", begin)
    monkeypatch.setattr(store._database._disk_space, "allocate", allocate)
    assert store.inboxes.close("acme", "crm")
    assert [store.inboxes.delete_copies("acme", "crm", 25) for _ in range(3)] == [25, 8, 0]
    assert store.events.purge(NOW_MS + 3_600_000, 15) == 15
    assert store.events.purge(NOW_MS + 3_600_000, 100) == 18


def test_log_that_grew_for_a_large_write_shrinks_again(store_path: Path, store: SQLiteStore) -> None:
    log = store_path.with_name("inbox.db-wal")
    put(store, 20_000_000)
    assert log.stat().st_size > 20_000_000
    put(store)
    put(store)
    assert log.stat().st_size <= 8 * 1024 * 1024


def test_file_has_space_for_everything_in_the_log(store_path: Path, store: SQLiteStore) -> None:
    for payload_bytes in (10, 10_000, 300_000, 3_000_000):
        put(store, payload_bytes)
        pages = store._database.write(lambda connection: connection.pragma("page_count"))
        status = store_path.stat()
        assert min(status.st_size, status.st_blocks * 512) >= pages * 4096


class _FailingConnection:
    """A connection that cannot end a transaction."""

    def __init__(self, connection: apsw.Connection, error: type[apsw.Error]) -> None:
        self._connection = connection
        self._error = error

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def execute(self, sql: str, parameters: tuple[object, ...] = ()) -> object:
        if sql in ("COMMIT", "ROLLBACK"):
            raise self._error("the disk is gone")
        return self._connection.execute(sql, parameters)


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
def test_commit_and_rollback_that_fail_are_unavailable_and_recover(store: SQLiteStore, error: type[apsw.Error]) -> None:
    writer = store._database._writer
    for _ in range(2):
        store.check()
        assert writer._connection is not None
        writer._connection = _FailingConnection(writer._connection, error)  # type: ignore[assignment]
        with pytest.raises(StoreUnavailable):
            put(store)

    put(store)
    assert len(claim(store)) == 1


def test_read_connections_are_reused(store: SQLiteStore) -> None:
    store.tenants.all()
    before = set(store._database._connections)
    for _ in range(20):
        thread = threading.Thread(target=store.tenants.all)
        thread.start()
        thread.join()
    assert store._database._connections == before


def test_lock_that_is_never_released_is_unavailable(
    store_path: Path, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_LOCK_WAIT_SECONDS", 0.05)
    other = apsw.Connection(str(store_path))
    other.execute("BEGIN IMMEDIATE")
    for write in (store.check, lambda: put(store)):
        with pytest.raises(StoreUnavailable):
            write()
    assert claim(store) == []
    other.close()
    store.check()


def test_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "inbox.db").mkdir()
    with pytest.raises(StoreUnavailable, match=r"inbox\.db is a folder\. Check INBOX_STORE\.$"):
        Database(tmp_path / "inbox.db").create()
