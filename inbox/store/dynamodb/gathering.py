"""Events that arrive together are written together.

The first thread writes at once, alone. Whoever comes while a write is under way waits, and is taken along by the next
one, led by the first of them; as soon as a full batch waits, it goes too. No thread of its own and no delay: a lone
event is never held back.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence

from inbox.store.dynamodb.layout import Item

MOST_TOGETHER = 25
"""What BatchWriteItem takes."""

_MOST_UNDER_WAY = 4

Write = Callable[[Sequence[Item]], Sequence[Exception | None]]


class _Waiting:
    __slots__ = ("done", "error", "item", "leads", "turn")

    def __init__(self, item: Item) -> None:
        self.item = item
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

    def put(self, item: Item) -> None:
        """Returns when the item is stored."""
        waiting = _Waiting(item)
        with self._mutex:
            self._queue.append(waiting)
            full = len(self._queue) >= MOST_TOGETHER and self._under_way < _MOST_UNDER_WAY
            if full or self._under_way == 0:
                self._under_way += 1
                waiting.leads = True
        while True:
            with self._mutex:
                leads, done = waiting.leads, waiting.done
                waiting.leads = False
            # Also where a full batch has taken its item along meanwhile: others wait to be led.
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
            group = [self._queue.popleft() for _ in range(min(MOST_TOGETHER, len(self._queue)))]
        errors: Sequence[Exception | None] = [RuntimeError("The write was interrupted.")] * len(group)
        try:
            if group:
                errors = self._write([waiting.item for waiting in group])
        finally:
            self._finish(group, errors)

    def _finish(self, group: list[_Waiting], errors: Sequence[Exception | None]) -> None:
        with self._mutex:
            for waiting, error in zip(group, errors, strict=True):
                waiting.error = error
                waiting.done = True
                waiting.turn.release()
            successor = self._queue[0] if self._queue else None
            # Where another one has told it to lead already, it can do so only once.
            if successor is None or successor.leads:
                self._under_way -= 1
            else:
                successor.leads = True
                successor.turn.release()
