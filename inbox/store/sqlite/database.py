"""One SQLite file: opened on first use, read from any thread, written through a group commit."""

import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import apsw

from inbox.errors import StoreFull
from inbox.shared_integer import SharedInteger
from inbox.store.sqlite.disk_space import DiskSpace
from inbox.store.sqlite.files import (
    BROKEN_CONNECTION,
    TEMPORARY,
    real_path,
    refuse_empty,
    refuse_leftovers,
    unavailable,
)
from inbox.store.sqlite.group_commit import GroupCommit, T, Transaction
from inbox.store.sqlite.migrations import check_not_older, check_ours_or_empty, check_schema, migrate

Row = tuple[Any, ...]
Parameters = Row | Mapping[str, Any]

_LOCK_WAIT_SECONDS = 5.0
_LOCK_RETRY_SECONDS = 0.0003
_WRITER_CACHE_KIB = 4_000


class Database:
    """Reconnects after a connection broke. Do not use it across a fork: SQLite would corrupt the file."""

    def __init__(self, path: Path, needed_disk_bytes: SharedInteger | None = None) -> None:
        self.path = real_path(path)
        self._disk_space = DiskSpace(self.path, needed_disk_bytes or SharedInteger())
        self._connections_mutex = threading.Lock()
        self._connections: set[apsw.Connection] = set()
        self._idle_readers: deque[apsw.Connection] = deque()
        self._writer = GroupCommit(self, self._disk_space)

    def create(self, *, upgrade: bool = True) -> None:
        """Creates the file and its schema if they are missing, and migrates a file of an earlier release.

        Raises StoreUnavailable for a file of another program and, without `upgrade`, for one of an earlier release.
        """
        try:
            refuse_leftovers(self.path)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Keeps payloads from other users of the machine. SQLite gives the companions the same mode.
            self.path.touch(mode=0o600)
            # A restore may have moved the file after the first check. `touch` has then created a new one.
            refuse_leftovers(self.path)
            with closing(self._open()) as connection:
                # Before anything is written, even the file's journal mode.
                check_ours_or_empty(connection)
                if not upgrade:
                    check_not_older(connection)
                _enable_log(connection)
                migrate(connection)
        except (apsw.Error, OSError) as error:
            raise unavailable(self.path, error) from error

    def read(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return self.scan(sql, parameters, list)

    def scan(self, sql: str, parameters: Parameters, use_rows: Callable[[Iterable[Row]], T]) -> T:
        """Returns the result of `use_rows`. Only the rows that it iterates over are read."""
        connection: apsw.Connection | None = None
        try:
            connection = self._idle_reader() or self.connect()
            with closing(connection.execute(sql, parameters)) as rows:
                return use_rows(rows)
        except TEMPORARY as error:
            if connection is not None and isinstance(error, BROKEN_CONNECTION):
                self.discard(connection)
            raise unavailable(self.path, error) from error
        finally:
            # Not if it was discarded above, or by `close`.
            if connection in self._connections:
                self._idle_readers.append(connection)

    def write(self, transaction: Transaction[T]) -> T:
        return self._writer.run(transaction)

    def delete(self, delete_rows: Callable[[int, apsw.Connection], int], limit: int) -> int:
        """Deletes up to `limit` rows, in several transactions if the disk is too full for the log of a single one."""
        deleted, max_rows = 0, limit
        while True:
            rows = min(max_rows, limit - deleted)
            try:
                deleted_now = self.write(partial(delete_rows, rows))
            except StoreFull:
                if rows == 1:
                    raise
                max_rows = max(1, rows // 10)
                continue
            deleted += deleted_now
            if deleted_now < rows or deleted == limit:
                return deleted

    def check(self) -> None:
        """Raises StoreUnavailable unless a write succeeds and the disk has space."""
        self._disk_space.check(self.write(_probe))

    def set_batch_listener(self, on_batch: Callable[[int], object]) -> None:
        self._writer.on_group = on_batch

    def close(self) -> None:
        for connection in list(self._connections):
            self.discard(connection)

    def connect(self) -> apsw.Connection:
        refuse_empty(self.path)
        connection = self._open()
        try:
            if connection.readonly("main"):
                raise apsw.ReadOnlyError("the file is read-only")
            check_schema(connection)
        except BaseException:
            connection.close()
            raise
        with self._connections_mutex:
            self._connections.add(connection)
        return connection

    def connect_to_write(self) -> apsw.Connection:
        connection = self.connect()
        # Twice SQLite's default: writes touch pages all over the index of event IDs.
        connection.pragma("cache_size", -_WRITER_CACHE_KIB)
        self._disk_space.prepare(connection)
        return connection

    def is_in_place(self, connection: apsw.Connection) -> bool:
        """Returns False if the connection's file was moved or deleted."""
        has_moved = ctypes.c_int()
        connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(has_moved))
        return not has_moved.value

    def discard(self, connection: apsw.Connection) -> None:
        with self._connections_mutex:
            self._connections.discard(connection)
        connection.close()

    def _idle_reader(self) -> apsw.Connection | None:
        while True:
            try:
                connection = self._idle_readers.pop()
            except IndexError:
                return None
            if self.is_in_place(connection):
                return connection
            self.discard(connection)

    def _open(self) -> apsw.Connection:
        # Without CREATE: if the file was moved away, a new and empty one must not take its place.
        connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_handler(_WaitForLock())
        # FULL syncs the log at every commit, so that a power cut loses no accepted event. The other two make macOS
        # sync to the disk itself.
        for name, value in (("synchronous", "full"), ("fullfsync", 1), ("checkpoint_fullfsync", 1)):
            connection.pragma(name, value)
        connection.pragma("foreign_keys", 1)
        return connection


def _probe(connection: apsw.Connection) -> int:
    """Rewrites a value, because only a write detects a full disk. Returns the unused bytes in the file."""
    connection.pragma("user_version", connection.pragma("user_version"))
    unused: int = connection.pragma("freelist_count") * connection.pragma("page_size")
    return unused


class _WaitForLock:
    """A busy handler that makes SQLite retry every 0.3 ms for five seconds.

    SQLite's own handler backs off to 100 ms, which halves the throughput of two busy writers.
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


def _enable_log(connection: apsw.Connection) -> None:
    # This takes an exclusive lock that no busy handler waits for.
    wait = _WaitForLock()
    for tries in count():
        try:
            connection.pragma("journal_mode", "wal")
            return
        except apsw.BusyError:
            if not wait(tries):
                raise
