"""What only the embedded store owns: durability settings, migrations, group commit, trouble with the disk."""

import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from inbox.domain.events import DEFAULT_INBOX, Event, ExportedEvent, NewEvent, PageSize, Status
from inbox.domain.inboxes import Inbox
from inbox.errors import StoreFull, StoreUnavailable
from inbox.store.sqlite import SQLiteStore, database, migrations
from inbox.store.sqlite.database import Database

NOW = 1_732_140_249_123
LATER = NOW // 1000 + 3600
MAX_DELIVERIES = 3


def new_event(payload: bytes = b"{}") -> NewEvent:
    return NewEvent(str(uuid.uuid4()), None, payload)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "inbox.db"


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


def test_what_an_earlier_release_kept_is_still_there(path: Path) -> None:
    path.parent.mkdir()
    old = apsw.Connection(str(path))
    for script in migrations._scripts()[:2]:
        old.execute(script)
    old.execute("PRAGMA user_version = 2")
    insert = """
        INSERT INTO events (tenant_id, event_id, event_type, timestamp_ms, status, deliveries, delivered_at_ms,
                            fingerprint, payload, expires_at_s)
        VALUES ('acme', ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
    for row in (
        ("first", "order.created", NOW, "delivered", 1, NOW + 5, b"print", '{"n":1.0}', LATER),
        ("second", None, NOW + 1, "undelivered", 0, None, None, '{"n":2}', LATER),
        ("erased", None, NOW + 1, "undelivered", 0, None, None, "{}", LATER),
    ):
        old.execute(insert, row)
    old.execute("DELETE FROM events WHERE event_id = 'erased'")
    old.close()

    store = SQLiteStore(path, MAX_DELIVERIES)
    delivered = Event("first", "order.created", NOW, Status.DELIVERED, 1, NOW + 5, b'{"n":1.0}')
    undelivered = Event("second", None, NOW + 1, Status.UNDELIVERED, 0, None, b'{"n":2}')
    assert store.events.export_events("acme", 0, 9, NOW) == [
        ExportedEvent(1, delivered, b"print", LATER),
        ExportedEvent(2, undelivered, None, LATER),
    ]
    assert store.events.claim("acme", DEFAULT_INBOX, PageSize(9, 1000), NOW).events[0].event_id == "second"
    # The number of the one that was erased is not given out again.
    store.events.put("acme", [new_event()], NOW, LATER)
    assert store.events.export_events("acme", 2, 9, NOW)[0].number == 4
    store.close()


def test_opening_again_changes_nothing(path: Path, store: SQLiteStore) -> None:
    store.events.put("acme", [new_event()], NOW, LATER)
    again = SQLiteStore(path, MAX_DELIVERIES)
    assert len(again.events.claim("acme", DEFAULT_INBOX, PageSize(9, 1_000_000), NOW).events) == 1
    again.close()


def test_many_may_open_a_new_database_at_once(path: Path) -> None:
    opened: list[SQLiteStore] = []
    threads = [threading.Thread(target=lambda: opened.append(SQLiteStore(path, MAX_DELIVERIES))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 8
    for store in opened:
        store.close()


def test_a_database_of_a_newer_release_is_left_alone(path: Path, store: SQLiteStore) -> None:
    store._database.write(lambda connection: connection.execute("PRAGMA user_version = 999"))
    with pytest.raises(StoreUnavailable, match="newer release"):
        SQLiteStore(path, MAX_DELIVERIES)


def _wait_for_queue(store: SQLiteStore, length: int) -> None:
    deadline = time.monotonic() + 10
    while len(store._database._writer._queue) < length:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_writers_that_wait_share_a_commit(store: SQLiteStore) -> None:
    commits: list[int] = []
    started, released = threading.Event(), threading.Event()

    def on_commit() -> bool:
        commits.append(1)
        return False

    def hold(connection: apsw.Connection) -> None:
        connection.set_commit_hook(on_commit)
        started.set()
        released.wait(10)

    leader = threading.Thread(target=store._database.write, args=(hold,))
    leader.start()
    assert started.wait(10)
    waiting = [threading.Thread(target=store.events.put, args=("acme", [new_event()], NOW, LATER)) for _ in range(10)]
    for thread in waiting:
        thread.start()
    _wait_for_queue(store, len(waiting))
    released.set()
    for thread in (leader, *waiting):
        thread.join()

    assert len(commits) == 2  # the one that held them up, and one for all ten
    assert len(store.events.claim("acme", DEFAULT_INBOX, PageSize(99, 1_000_000), NOW).events) == 10


def test_one_that_fails_takes_none_of_its_neighbours_down(store: SQLiteStore) -> None:
    started, released = threading.Event(), threading.Event()

    def hold(_connection: apsw.Connection) -> None:
        started.set()
        released.wait(10)

    def fail(connection: apsw.Connection) -> None:
        connection.execute("DELETE FROM events")
        raise ZeroDivisionError

    failures: list[Exception] = []

    def run_failing() -> None:
        try:
            store._database.write(fail)
        except ZeroDivisionError as error:
            failures.append(error)

    store.events.put("acme", [new_event()], NOW, LATER)
    threads = [
        threading.Thread(target=store._database.write, args=(hold,)),
        threading.Thread(target=store.events.put, args=("acme", [new_event()], NOW, LATER)),
        threading.Thread(target=run_failing),
        threading.Thread(target=store.events.put, args=("acme", [new_event()], NOW, LATER)),
    ]
    threads[0].start()
    assert started.wait(10)
    for thread in threads[1:]:
        thread.start()
    _wait_for_queue(store, len(threads) - 1)
    released.set()
    for thread in threads:
        thread.join()

    assert len(failures) == 1
    assert len(store.events.claim("acme", DEFAULT_INBOX, PageSize(9, 1_000_000), NOW).events) == 3


def test_a_full_database_is_unavailable_and_recovers(store: SQLiteStore) -> None:
    store.events.put("acme", [new_event()], NOW, LATER)
    writer = store._database._writer._connection
    assert writer is not None
    writer.pragma("max_page_count", writer.pragma("page_count") + 1)
    with pytest.raises(StoreUnavailable):
        store.events.put("acme", [new_event(b'{"a":"' + b"x" * 50_000 + b'"}')], NOW, LATER)
    writer.pragma("max_page_count", 1_000_000)

    store.events.put("acme", [new_event()], NOW, LATER)
    assert len(store.events.claim("acme", DEFAULT_INBOX, PageSize(9, 1_000_000), NOW).events) == 2


def test_insert_without_room_does_not_fail_the_erasure_in_its_group(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    erased = new_event()
    store.events.put("acme", [erased], NOW, LATER)
    pages = store._database.write(lambda connection: connection.pragma("page_count"))

    def allocate(connection: apsw.Connection) -> None:
        if connection.pragma("page_count") > pages:
            raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(store._database._disk_space, "allocate", allocate)
    started, released = threading.Event(), threading.Event()

    def hold(_connection: apsw.Connection) -> None:
        started.set()
        released.wait(10)

    with ThreadPoolExecutor() as pool:
        leader = pool.submit(store._database.write, hold)
        assert started.wait(10)
        insert = pool.submit(store.events.put, "acme", [new_event(b'"' + b"x" * 50_000 + b'"')], NOW, LATER)
        erasure = pool.submit(store.events.erase, "acme", erased.event_id, NOW)
        missing = pool.submit(store._database.write, lambda _connection: 1 / 0)
        _wait_for_queue(store, 3)
        released.set()
    leader.result()
    assert isinstance(insert.exception(), StoreFull)
    assert isinstance(missing.exception(), ZeroDivisionError)
    assert erasure.result() is True
    assert store.events.count("acme", NOW) == 0


def test_deletion_without_room_for_its_log_takes_fewer_rows_at_once(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.inboxes.save("acme", Inbox("crm", None, NOW))
    store.events.put("acme", [new_event() for _ in range(33)], NOW, LATER)
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
    assert store.events.purge(NOW + 3_600_000, 15) == 15
    assert store.events.purge(NOW + 3_600_000, 100) == 18


def test_log_that_grew_for_a_large_write_shrinks_again(path: Path, store: SQLiteStore) -> None:
    log = path.with_name("inbox.db-wal")
    store.events.put("acme", [new_event(b'"' + b"x" * 20_000_000 + b'"')], NOW, LATER)
    assert log.stat().st_size > 20_000_000
    for _ in range(2):
        store.events.put("acme", [new_event()], NOW, LATER)
    assert log.stat().st_size <= 8 * 1024 * 1024


def test_file_has_room_for_everything_in_the_log(path: Path, store: SQLiteStore) -> None:
    for size in (10, 10_000, 300_000, 3_000_000):
        store.events.put("acme", [new_event(b'"' + b"x" * size + b'"')], NOW, LATER)
        pages = store._database.write(lambda connection: connection.pragma("page_count"))
        status = path.stat()
        assert min(status.st_size, status.st_blocks * 512) >= pages * 4096


class _Flaky:
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
def test_a_commit_and_a_rollback_that_fail_are_unavailable_and_recover(
    store: SQLiteStore, error: type[apsw.Error]
) -> None:
    writer = store._database._writer
    for _ in range(2):
        store.check()
        assert writer._connection is not None
        writer._connection = _Flaky(writer._connection, error)  # type: ignore[assignment]
        with pytest.raises(StoreUnavailable):
            store.events.put("acme", [new_event()], NOW, LATER)

    store.events.put("acme", [new_event()], NOW, LATER)
    assert len(store.events.claim("acme", DEFAULT_INBOX, PageSize(9, 1000), NOW).events) == 1


def test_an_interrupted_act_leaves_the_writer_usable(store: SQLiteStore) -> None:
    def interrupt(_connection: apsw.Connection) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store._database.write(interrupt)
    store.events.put("acme", [new_event()], NOW, LATER)
    assert len(store.events.claim("acme", DEFAULT_INBOX, PageSize(9, 1000), NOW).events) == 1


def test_the_neighbours_of_an_interrupted_act_are_told(store: SQLiteStore) -> None:
    started, released = threading.Event(), threading.Event()
    outcomes: list[type[BaseException] | None] = []

    def interrupt(_connection: apsw.Connection) -> None:
        raise KeyboardInterrupt

    def run(act: Callable[[apsw.Connection], object]) -> None:
        try:
            store._database.write(act)
            outcomes.append(None)
        except BaseException as error:
            outcomes.append(type(error))

    def hold(_connection: apsw.Connection) -> None:
        started.set()
        released.wait(10)

    leader = threading.Thread(target=run, args=(hold,))
    leader.start()
    assert started.wait(10)
    group = [threading.Thread(target=run, args=(act,)) for act in (lambda _: 1, interrupt, lambda _: 2)]
    for thread in group:
        thread.start()
    _wait_for_queue(store, len(group))
    released.set()
    for thread in (leader, *group):
        thread.join(10)

    assert outcomes == [None, KeyboardInterrupt, KeyboardInterrupt, KeyboardInterrupt]
    store.events.put("acme", [new_event()], NOW, LATER)


def test_readers_are_used_again(store: SQLiteStore) -> None:
    store.tenants.all()
    open_before = set(store._database._connections)
    for _ in range(20):
        thread = threading.Thread(target=store.tenants.all)
        thread.start()
        thread.join()
    assert store._database._connections == open_before


def test_a_lock_that_never_comes_is_unavailable(
    path: Path, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_LOCK_WAIT_SECONDS", 0.05)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    for call in (store.check, lambda: store.events.put("acme", [new_event()], NOW, LATER)):
        with pytest.raises(StoreUnavailable):
            call()
    assert store.events.claim("acme", DEFAULT_INBOX, PageSize(9, 1_000_000), NOW).events == []
    other.close()
    store.check()


def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "inbox.db").mkdir()
    with pytest.raises(StoreUnavailable):
        Database(tmp_path / "inbox.db").create()
