"""One writer per process, and one commit for all who wait for it.

A commit costs an fsync, however many events are in it. The first thread that wants to write leads: it waits for the
database's write lock, and only then gathers whoever has queued up meanwhile. While it commits the next group gathers
behind it, led by the first of them. No thread of its own, so a lone writer is never handed over.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

import apsw

from inbox.store.sqlite.disk_space import DiskRoom
from inbox.store.sqlite.errors import BROKEN, PASSING, unavailable

T = TypeVar("T")
Act = Callable[[apsw.Connection], T]


class _Waiting(Generic[T]):
    __slots__ = ("act", "error", "leads", "result", "turn")

    result: T

    def __init__(self, act: Act[T]) -> None:
        self.act = act
        self.leads = False
        self.error: BaseException | None = None
        self.turn = threading.Lock()
        self.turn.acquire()

    def fail(self, error: BaseException) -> None:
        """A passing fault becomes a StoreUnavailable for each who waits; anything else is a bug and stays."""
        self.error = unavailable(error) if isinstance(error, PASSING) else error


class Source(Protocol):
    """Where connections come from, and go to."""

    def connect_to_write(self) -> apsw.Connection: ...

    def is_in_place(self, connection: apsw.Connection) -> bool:
        """Whether its file is still where it was opened."""

    def discard(self, connection: apsw.Connection) -> None: ...


class GroupCommit:
    """Owns the connection it asks for, from the first write on; nobody else may use it.

    `on_group` hears how many were in a group, once they have been told.
    """

    def __init__(self, source: Source, room: DiskRoom) -> None:
        self._source = source
        self._room = room
        self._connection: apsw.Connection | None = None
        self._mutex = threading.Lock()
        self._queue: deque[_Waiting[Any]] = deque()
        self._led = False
        self.on_group: Callable[[int], object] = lambda _callers: None

    def run(self, act: Act[T]) -> T:
        """Performs `act` in a transaction and returns when it is on disk. An act that raises leaves no trace."""
        waiting = _Waiting(act)
        with self._mutex:
            self._queue.append(waiting)
            waiting.leads = not self._led
            self._led = True
        if not waiting.leads:
            # Bounded by the leader's own wait for the write lock.
            waiting.turn.acquire()
        if waiting.leads:
            self._lead()
        if waiting.error is not None:
            raise waiting.error
        return waiting.result

    def _lead(self) -> None:
        group: list[_Waiting[Any]] = []
        try:
            connection = self._begin()
            group = self._gather()
            self._commit(connection, group)
        except BaseException as error:
            # Those who queued up behind a lock that never came would only wait as long again.
            group = group or self._gather()
            for waiting in group:
                waiting.fail(error)
            self._clean_up(error, len(group))
            if isinstance(error, apsw.FullError) and self._connection is not None:
                self._retry_singly(group)
        finally:
            self._hand_over(group)
        self.on_group(len(group))

    def _begin(self) -> apsw.Connection:
        self._connection = connection = self._connection or self._source.connect_to_write()
        self._room.begin(connection)
        connection.execute("BEGIN IMMEDIATE")
        return connection

    def _commit(self, connection: apsw.Connection, group: list[_Waiting[Any]]) -> None:
        for waiting in group:
            _perform(waiting, connection)
        self._room.allocate(connection)
        connection.execute("COMMIT")
        # If the file was moved or deleted, the commit went to a file that is no longer the store.
        if not self._source.is_in_place(connection):
            raise apsw.CantOpenError("the file is not where it was opened")

    def _retry_singly(self, group: list[_Waiting[Any]]) -> None:
        """Performs each act in its own transaction, so that an insert that does not fit fails no erasure."""
        for waiting in group:
            try:
                self._commit(self._begin(), [waiting])
            except BaseException as error:
                waiting.fail(error)
                self._clean_up(error, 1)
                if not isinstance(error, apsw.FullError):
                    # The others would wait as long for the same lock, or meet the same fault.
                    return

    def _clean_up(self, error: BaseException, callers: int) -> None:
        connection = self._connection
        if connection is None:
            return
        if not isinstance(error, BROKEN):
            with suppress(apsw.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if isinstance(error, apsw.FullError):
                    self._room.reclaim(connection, callers)
                if self._source.is_in_place(connection):
                    return
        self._connection = None
        self._source.discard(connection)

    def _gather(self) -> list[_Waiting[Any]]:
        with self._mutex:
            group = list(self._queue)
            self._queue.clear()
        return group

    def _hand_over(self, group: list[_Waiting[Any]]) -> None:
        with self._mutex:
            successor = self._queue[0] if self._queue else None
            self._led = successor is not None
        for waiting in group:
            if not waiting.leads:
                waiting.turn.release()
        if successor is not None:
            successor.leads = True
            successor.turn.release()


def _perform(waiting: _Waiting[Any], connection: apsw.Connection) -> None:
    waiting.error = None
    # A savepoint: one act's failure must not take its neighbours down.
    connection.execute("SAVEPOINT act")
    try:
        waiting.result = waiting.act(connection)
    except Exception as error:
        # SQLite may have rolled back the whole transaction.
        if not connection.in_transaction or isinstance(error, (apsw.FullError, *BROKEN)):
            raise
        connection.execute("ROLLBACK TO act")
        waiting.fail(error)
    connection.execute("RELEASE act")
