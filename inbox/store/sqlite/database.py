"""One SQLite file: how it is opened, read from any thread, and written by one."""

import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from inbox.errors import StoreFull, StoreUnavailable
from inbox.store.shared_integer import SharedInteger
from inbox.store.sqlite.disk_space import DiskRoom
from inbox.store.sqlite.errors import BROKEN, PASSING, unavailable
from inbox.store.sqlite.files import real_path, refuse_empty, refuse_leftovers
from inbox.store.sqlite.group_commit import Act, GroupCommit, T
from inbox.store.sqlite.migrations import check_not_older, check_schema, migrate

Row = tuple[Any, ...]
Parameters = Row | Mapping[str, Any]

_LOCK_WAIT_SECONDS = 5.0
_LOCK_RETRY_SECONDS = 0.0003
_WRITER_CACHE_KIB = 4_000


class Database:
    """Connects on first use, and anew after a connection broke. One that crosses a fork corrupts the file."""

    def __init__(self, path: Path, needed_disk_bytes: SharedInteger | None = None) -> None:
        self._path = real_path(path)
        self._room = DiskRoom(self._path, needed_disk_bytes or SharedInteger())
        self._open_mutex = threading.Lock()
        self._open: set[apsw.Connection] = set()
        self._idle_readers: deque[apsw.Connection] = deque()
        self._writer = GroupCommit(self, self._room)

    def make(self, *, upgrade: bool = True) -> None:
        """Creates the file if it is missing, and its schema.

        With `upgrade` it also migrates a file of an earlier release, which otherwise is a StoreUnavailable.
        """
        try:
            refuse_leftovers(self._path)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Payloads are nobody else's business on this machine; SQLite gives its other files the same mode.
            self._path.touch(mode=0o600)
            # Again: a restore may just have moved the file, so that this is a new one.
            refuse_leftovers(self._path)
            with closing(self._connection()) as connection:
                if not upgrade:
                    check_not_older(connection)
                # Turning the log on takes an exclusive lock that no busy handler waits for.
                _retrying(lambda: connection.pragma("journal_mode", "wal"))
                migrate(connection)
        except (apsw.Error, OSError) as error:
            raise StoreUnavailable(f"{self._path} cannot be opened as a database ({type(error).__name__}).") from error

    def read(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return self.scan(sql, parameters, list)

    def scan(self, sql: str, parameters: Parameters, take: Callable[[Iterable[Row]], T]) -> T:
        """What `take` makes of the rows. Those that it does not ask for are not read."""
        try:
            with self._reader() as connection, closing(connection.execute(sql, parameters)) as rows:
                return take(rows)
        except PASSING as error:
            raise unavailable(error) from error

    def write(self, act: Act[T]) -> T:
        return self._writer.run(act)

    def delete(self, delete_rows: Callable[[int, apsw.Connection], int], limit: int) -> int:
        """Deletes up to `limit` rows, in several transactions if the disk is too full for the log of a single one."""
        deleted, at_once = 0, limit
        while True:
            step = min(at_once, limit - deleted)
            try:
                last = self.write(partial(delete_rows, step))
            except StoreFull:
                if step == 1:
                    raise
                at_once = max(1, step // 10)
                continue
            deleted += last
            if last < step or deleted == limit:
                return deleted

    def check(self) -> None:
        """Raises StoreUnavailable unless a write succeeds and the disk has room."""
        self._room.check(self.write(_probe))

    def set_batch_listener(self, on_batch: Callable[[int], object]) -> None:
        self._writer.on_group = on_batch

    def close(self) -> None:
        for connection in list(self._open):
            self.discard(connection)

    def connect(self) -> apsw.Connection:
        refuse_empty(self._path)
        connection = self._connection()
        try:
            if connection.readonly("main"):
                raise apsw.ReadOnlyError("the file can only be read")
            check_schema(connection)
        except BaseException:
            connection.close()
            raise
        with self._open_mutex:
            self._open.add(connection)
        return connection

    def connect_to_write(self) -> apsw.Connection:
        connection = self.connect()
        # Twice SQLite's own: the ids of a million events are in an index that takes many pages, in no order.
        connection.pragma("cache_size", -_WRITER_CACHE_KIB)
        self._room.prepare(connection)
        return connection

    def is_in_place(self, connection: apsw.Connection) -> bool:
        has_moved = ctypes.c_int()
        connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(has_moved))
        return not has_moved.value

    def discard(self, connection: apsw.Connection) -> None:
        with self._open_mutex:
            self._open.discard(connection)
        connection.close()

    @contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        """A connection for one read: as many are open as there were ever reads at the same time."""
        connection = self._idle_reader() or self.connect()
        try:
            yield connection
        except BROKEN:
            self.discard(connection)
            raise
        finally:
            if connection in self._open:
                self._idle_readers.append(connection)

    def _idle_reader(self) -> apsw.Connection | None:
        while True:
            try:
                connection = self._idle_readers.pop()
            except IndexError:
                return None
            if self.is_in_place(connection):
                return connection
            self.discard(connection)

    def _connection(self) -> apsw.Connection:
        # Without CREATE: where the file has gone, a new and empty one in its place would be a lie.
        connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_handler(_WaitForLock())
        # FULL syncs the log at every commit, so that a power cut loses nothing that was answered with 201; the
        # other two make macOS mean it.
        for name, value in (("synchronous", "full"), ("fullfsync", 1), ("checkpoint_fullfsync", 1)):
            connection.pragma(name, value)
        connection.pragma("foreign_keys", 1)
        return connection


def _probe(connection: apsw.Connection) -> int:
    """Writes a value anew, since only a write shows that the disk is full. Returns the bytes unused in the file."""
    connection.pragma("user_version", connection.pragma("user_version"))
    unused: int = connection.pragma("freelist_count") * connection.pragma("page_size")
    return unused


class _WaitForLock:
    """Asks again every third of a millisecond, for a few seconds.

    SQLite's own handler backs off to a tenth of a second, which two busy writers feel as half the throughput.
    """

    def __init__(self) -> None:
        self._deadline = 0.0

    def __call__(self, tries: int) -> bool:
        now = time.monotonic()
        if tries == 0:
            self._deadline = now + _LOCK_WAIT_SECONDS
        elif now > self._deadline:
            return False
        time.sleep(_LOCK_RETRY_SECONDS)
        return True


def _retrying(act: Callable[[], Any]) -> None:
    wait = _WaitForLock()
    tries = 0
    while True:
        try:
            act()
            return
        except apsw.BusyError:
            if not wait(tries):
                raise
            tries += 1
