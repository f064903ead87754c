"""One writer per process, and one commit for all who wait for it.

A commit costs an fsync, however many events are in it. The first thread that wants to write leads: it waits for the
database's write lock, and only then gathers whoever has queued up meanwhile. While it commits the next group gathers
behind it, led by the first of them. No thread of its own, so a lone writer is never handed over.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import apsw

from inbox.store.sqlite.faults import PASSING, unavailable

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


class GroupCommit:
    """Owns the connection it is given; nobody else may use it."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._mutex = threading.Lock()
        self._queue: deque[_Waiting[Any]] = deque()
        self._led = False

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
            # Only where an earlier one could not be ended, as on a disk that failed.
            self._roll_back()
            self._connection.execute("BEGIN IMMEDIATE")
            group = self._gather()
            for waiting in group:
                self._perform(waiting)
            self._connection.execute("COMMIT")
        except BaseException as error:
            # Those who queued up behind a lock that never came would only wait as long again.
            group = group or self._gather()
            for waiting in group:
                waiting.fail(error)
            with suppress(apsw.Error):
                self._roll_back()
        finally:
            self._hand_over(group)

    def _perform(self, waiting: _Waiting[Any]) -> None:
        # A savepoint: one act's failure must not take its neighbours down.
        self._connection.execute("SAVEPOINT act")
        try:
            waiting.result = waiting.act(self._connection)
        except Exception as error:
            # A full disk can end the whole transaction on the spot; then everybody in it failed.
            if not self._connection.in_transaction:
                raise
            self._connection.execute("ROLLBACK TO act")
            waiting.fail(error)
        self._connection.execute("RELEASE act")

    def _gather(self) -> list[_Waiting[Any]]:
        with self._mutex:
            group = list(self._queue)
            self._queue.clear()
        return group

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

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
