"""One SQLite file: how it is opened, read from any thread, and written by one."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from inbox.errors import StoreUnavailable
from inbox.store.sqlite.faults import PASSING, unavailable
from inbox.store.sqlite.group_commit import Act, GroupCommit, T
from inbox.store.sqlite.migrations import migrate

Row = tuple[Any, ...]
Parameters = Row | Mapping[str, Any]

_LOCK_WAIT_SECONDS = 5.0
_LOCK_RETRY_SECONDS = 0.0003
_WRITER_CACHE_KIB = 4_000


class Database:
    """Opened after the fork: a connection that crosses one corrupts the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open_mutex = threading.Lock()
        self._open: list[apsw.Connection] = []
        self._idle_readers: deque[apsw.Connection] = deque()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Payloads are nobody else's business on this machine; SQLite gives its other files the same mode.
            path.touch(mode=0o600)
            writer = self._connect()
            _retrying(lambda: writer.pragma("journal_mode", "wal"))
            # Twice SQLite's own: the ids of a million events are in an index that takes many pages, in no order.
            writer.pragma("cache_size", -_WRITER_CACHE_KIB)
            migrate(writer)
        except (apsw.Error, OSError) as error:
            raise StoreUnavailable(f"{path} cannot be opened as a database ({type(error).__name__}).") from error
        self._writer = GroupCommit(writer)

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

    def close(self) -> None:
        with self._open_mutex:
            for connection in self._open:
                connection.close()
            self._open.clear()

    @contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        """A connection for one read: as many are open as there were ever reads at the same time."""
        try:
            connection = self._idle_readers.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        finally:
            self._idle_readers.append(connection)

    def _connect(self) -> apsw.Connection:
        # Without CREATE: where the file has gone, a new and empty one in its place would be a lie.
        connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_handler(_WaitForLock())
        # FULL syncs the log at every commit, so that a power cut loses nothing that was answered with 201; the
        # other two make macOS mean it.
        for name, value in (("synchronous", "full"), ("fullfsync", 1), ("checkpoint_fullfsync", 1)):
            connection.pragma(name, value)
        connection.pragma("foreign_keys", 1)
        with self._open_mutex:
            self._open.append(connection)
        return connection


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
    # Turning the log on takes an exclusive lock that no busy handler waits for.
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
