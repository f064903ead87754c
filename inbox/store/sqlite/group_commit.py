"""One writer per process, and one commit for all threads that wait to write.

A commit costs an fsync, however many events it stores. The first thread that wants to write becomes the leader: it
waits for the database's write lock, then performs the transactions of all threads that have queued up meanwhile, and
commits them together. While it commits, the next group queues up, led by its first thread. There is no writer thread,
so a single writer never waits for a thread switch.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import apsw

from inbox.store.sqlite.disk_space import DiskSpace
from inbox.store.sqlite.files import BROKEN_CONNECTION, TEMPORARY, unavailable

if TYPE_CHECKING:
    from inbox.store.sqlite.database import Database

T = TypeVar("T")
Transaction = Callable[[apsw.Connection], T]


class _Write(Generic[T]):
    __slots__ = ("error", "is_leader", "result", "transaction", "turn")

    result: T

    def __init__(self, transaction: Transaction[T]) -> None:
        self.transaction = transaction
        self.is_leader = False
        self.error: BaseException | None = None
        self.turn = threading.Lock()
        self.turn.acquire()


class GroupCommit:
    """Owns the connection that writes. Calls `on_group` with the size of each group, once its threads continue."""

    def __init__(self, database: "Database", disk_space: DiskSpace) -> None:
        self._database = database
        self._disk_space = disk_space
        self._connection: apsw.Connection | None = None
        self._mutex = threading.Lock()
        self._queue: deque[_Write[Any]] = deque()
        self._has_leader = False
        self.on_group: Callable[[int], object] = lambda _writes: None

    def run(self, transaction: Transaction[T]) -> T:
        """Returns the transaction's result once it is on disk. A transaction that raises an error changes nothing."""
        write = _Write(transaction)
        with self._mutex:
            self._queue.append(write)
            write.is_leader = not self._has_leader
            self._has_leader = True
        if not write.is_leader:
            # Bounded by the leader's wait for the write lock.
            write.turn.acquire()
        if write.is_leader:
            self._lead()
        if write.error is not None:
            raise write.error
        return write.result

    def _lead(self) -> None:
        group: list[_Write[Any]] = []
        try:
            connection = self._begin()
            group = self._take_queue()
            self._commit(connection, group)
        except BaseException as error:
            # Without the write lock, the threads that have queued up would only wait as long again.
            group = group or self._take_queue()
            for write in group:
                self._fail(write, error)
            self._clean_up(error, len(group))
            if isinstance(error, apsw.FullError) and self._connection is not None:
                self._retry_singly(group)
        finally:
            self._finish(group)
        self.on_group(len(group))

    def _begin(self) -> apsw.Connection:
        self._connection = connection = self._connection or self._database.connect_to_write()
        self._disk_space.begin(connection)
        connection.execute("BEGIN IMMEDIATE")
        return connection

    def _commit(self, connection: apsw.Connection, group: list[_Write[Any]]) -> None:
        for write in group:
            self._perform(write, connection)
        self._disk_space.allocate(connection)
        connection.execute("COMMIT")
        # If the file was moved or deleted, the commit went to a file that is no longer the store.
        if not self._database.is_in_place(connection):
            raise apsw.CantOpenError("the file is not where it was opened")

    def _perform(self, write: _Write[Any], connection: apsw.Connection) -> None:
        write.error = None
        # A savepoint, so that one write's failure does not undo the others of its group.
        connection.execute("SAVEPOINT write")
        try:
            write.result = write.transaction(connection)
        except Exception as error:
            # SQLite may have rolled back the whole transaction.
            if not connection.in_transaction or isinstance(error, (apsw.FullError, *BROKEN_CONNECTION)):
                raise
            connection.execute("ROLLBACK TO write")
            self._fail(write, error)
        connection.execute("RELEASE write")

    def _fail(self, write: _Write[Any], error: BaseException) -> None:
        write.error = unavailable(self._database.path, error) if isinstance(error, TEMPORARY) else error

    def _retry_singly(self, group: list[_Write[Any]]) -> None:
        """Commits each write separately, so that an insert that does not fit fails no erasure."""
        for write in group:
            try:
                self._commit(self._begin(), [write])
            except BaseException as error:
                self._fail(write, error)
                self._clean_up(error, 1)
                if not isinstance(error, apsw.FullError):
                    # The others would wait as long for the same lock, or fail with the same error.
                    return

    def _clean_up(self, error: BaseException, writes: int) -> None:
        connection = self._connection
        if connection is None:
            return
        if not isinstance(error, BROKEN_CONNECTION):
            with suppress(apsw.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if isinstance(error, apsw.FullError):
                    self._disk_space.reclaim(connection, writes)
                if self._database.is_in_place(connection):
                    return
        self._connection = None
        self._database.discard(connection)

    def _take_queue(self) -> list[_Write[Any]]:
        with self._mutex:
            group = list(self._queue)
            self._queue.clear()
        return group

    def _finish(self, group: list[_Write[Any]]) -> None:
        """Lets the threads of the group continue, and makes the first queued thread the next leader."""
        with self._mutex:
            successor = self._queue[0] if self._queue else None
            self._has_leader = successor is not None
        for write in group:
            if not write.is_leader:
                write.turn.release()
        if successor is not None:
            successor.is_leader = True
            successor.turn.release()
