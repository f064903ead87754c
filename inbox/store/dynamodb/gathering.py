"""Events that arrive together are written together.

The first thread writes at once, alone. Whoever comes while a write is under way waits, and is taken along by the next
one, led by the first of them. Only where more wait than two batches take, one goes beside those under way: batches that
go too early are small, and the CPU that a call costs is nearly the same for one event as for 25. No thread of its own
and no delay: a lone event is never held back.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import islice
from queue import SimpleQueue

from inbox.store.dynamodb.layout import Item

MAX_TOGETHER = 25
"""What BatchWriteItem takes."""

TOO_MANY_WAIT = 2 * MAX_TOGETHER
_MAX_UNDER_WAY = 4

Write = Callable[[Sequence[Item]], Sequence[Exception | None]]


class _Word(Enum):
    LEAD = "lead the next write"


class _Waiting:
    """`told` brings the word to lead, as often as that is due, and in the end how its own items fared."""

    __slots__ = ("items", "leads", "told")

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.leads = False
        self.told: SimpleQueue[_Word | Exception | None] = SimpleQueue()


class Gathering:
    """`write` answers an error, or None, for each item that it is given.

    `on_group` hears how many callers a write was for, once they have been told.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._mutex = threading.Lock()
        self._queue: deque[_Waiting] = deque()
        self._items_queued = 0
        self._under_way = 0
        self.on_group: Callable[[int], object] = lambda _callers: None

    def put(self, items: Sequence[Item]) -> None:
        """Returns when all of the items are stored."""
        waiting = _Waiting(items)
        with self._mutex:
            self._queue.append(waiting)
            self._items_queued += len(items)
            self._let_lead(waiting)
        # Bounded by the limits of the calls to DynamoDB: whoever leads always hands over. It does so also where another
        # write has taken its own items along meanwhile, since others wait to be led.
        while (word := waiting.told.get()) is _Word.LEAD:
            self._lead(waiting)
        if word is not None:
            raise word

    def _let_lead(self, waiting: _Waiting) -> None:
        goes_beside = self._items_queued >= TOO_MANY_WAIT and self._under_way < _MAX_UNDER_WAY
        # Where another one has told it to lead already, it can do so only once.
        if (self._under_way == 0 or goes_beside) and not waiting.leads:
            self._under_way += 1
            waiting.leads = True
            waiting.told.put(_Word.LEAD)

    def _lead(self, leader: _Waiting) -> None:
        with self._mutex:
            leader.leads = False
            group = self._next_group()
        items = [item for waiting in group for item in waiting.items]
        errors: Sequence[Exception | None] = [RuntimeError("The write was interrupted.")] * len(items)
        try:
            if items:
                errors = self._write(items)
        finally:
            self._finish(group, errors)
        if group:
            self.on_group(len(group))

    def _next_group(self) -> list[_Waiting]:
        """As many as fit into a batch, and always one: an event may have more copies than that."""
        group: list[_Waiting] = []
        room = MAX_TOGETHER
        while self._queue and (not group or len(self._queue[0].items) <= room):
            group.append(self._queue.popleft())
            room -= len(group[-1].items)
        self._items_queued -= MAX_TOGETHER - room
        return group

    def _finish(self, group: list[_Waiting], errors: Sequence[Exception | None]) -> None:
        remaining = iter(errors)
        for waiting in group:
            failed = [error for error in islice(remaining, len(waiting.items)) if error is not None]
            waiting.told.put(failed[0] if failed else None)
        # Last, so that those who were answered just now and come back at once are taken along.
        with self._mutex:
            self._under_way -= 1
            if self._queue:
                self._let_lead(self._queue[0])
