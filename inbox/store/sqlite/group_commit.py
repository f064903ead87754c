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

from inbox.store.sqlite.faults import BROKEN, PASSING, unavailable

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

    def __init__(self, source: Source) -> None:
        self._source = source
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
            self._connection = connection = self._connection or self._source.connect_to_write()
            connection.execute("BEGIN IMMEDIATE")
            group = self._gather()
            for waiting in group:
                _perform(waiting, connection)
            connection.execute("COMMIT")
            # What went into a file that somebody has taken away was not kept.
            if not self._source.is_in_place(connection):
                raise apsw.CantOpenError("the file is not where it was opened")
        except BaseException as error:
            # Those who queued up behind a lock that never came would only wait as long again.
            group = group or self._gather()
            for waiting in group:
                waiting.fail(error)
            self._clean_up(error)
        finally:
            self._hand_over(group)
        self.on_group(len(group))

    def _clean_up(self, error: BaseException) -> None:
        connection = self._connection
        if connection is None:
            return
        if not isinstance(error, BROKEN):
            with suppress(apsw.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
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
    # A savepoint: one act's failure must not take its neighbours down.
    connection.execute("SAVEPOINT act")
    try:
        waiting.result = waiting.act(connection)
    except Exception as error:
        # A full disk can end the whole transaction on the spot; then everybody in it failed, as on a disk that fails.
        if not connection.in_transaction or isinstance(error, BROKEN):
            raise
        connection.execute("ROLLBACK TO act")
        waiting.fail(error)
    connection.execute("RELEASE act")
