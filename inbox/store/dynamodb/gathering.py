"""Events that arrive together are written together.

The first thread writes at once, alone. Whoever comes while a write is under way waits, and is taken along by the next
one, led by the first of them; as soon as a full batch waits, it goes too. No thread of its own and no delay: a lone
event is never held back.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from inbox.store.dynamodb.layout import Item

MOST_TOGETHER = 25
"""What BatchWriteItem takes."""

_MOST_UNDER_WAY = 4

Write = Callable[[Sequence[Item]], Sequence[Exception | None]]


class _Waiting:
    __slots__ = ("done", "error", "items", "leads", "turn")

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.leads = False
        self.done = False
        self.error: Exception | None = None
        self.turn = threading.Semaphore(0)


class Gathering:
    """`write` answers an error, or None, for each item that it is given."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._mutex = threading.Lock()
        self._queue: deque[_Waiting] = deque()
        self._under_way = 0

    def put(self, items: Sequence[Item]) -> None:
        """Returns when all of the items are stored."""
        waiting = _Waiting(items)
        with self._mutex:
            self._queue.append(waiting)
            queued = sum(len(each.items) for each in self._queue)
            full = queued >= MOST_TOGETHER and self._under_way < _MOST_UNDER_WAY
            if full or self._under_way == 0:
                self._under_way += 1
                waiting.leads = True
        while True:
            with self._mutex:
                leads, done = waiting.leads, waiting.done
                waiting.leads = False
            # Also where a full batch has taken its items along meanwhile: others wait to be led.
            if leads:
                self._lead()
            elif done:
                break
            else:
                # Bounded by the limits of the calls to DynamoDB: whoever leads always hands over.
                waiting.turn.acquire()
        if waiting.error is not None:
            raise waiting.error

    def _lead(self) -> None:
        with self._mutex:
            group = self._next_group()
        items = [item for waiting in group for item in waiting.items]
        errors: Sequence[Exception | None] = [RuntimeError("The write was interrupted.")] * len(items)
        try:
            if items:
                errors = self._write(items)
        finally:
            self._finish(group, errors)

    def _next_group(self) -> list[_Waiting]:
        """As many as fit into a batch, and always one: an event may have more copies than that."""
        group: list[_Waiting] = []
        room = MOST_TOGETHER
        while self._queue and (not group or len(self._queue[0].items) <= room):
            group.append(self._queue.popleft())
            room -= len(group[-1].items)
        return group

    def _finish(self, group: list[_Waiting], errors: Sequence[Exception | None]) -> None:
        remaining = iter(errors)
        with self._mutex:
            for waiting in group:
                failed = [error for error in islice(remaining, len(waiting.items)) if error is not None]
                waiting.error = failed[0] if failed else None
                waiting.done = True
                waiting.turn.release()
            successor = self._queue[0] if self._queue else None
            # Where another one has told it to lead already, it can do so only once.
            if successor is None or successor.leads:
                self._under_way -= 1
            else:
                successor.leads = True
                successor.turn.release()
