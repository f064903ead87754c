"""Queues of polls: the polls of one inbox in this process claim events one after the other."""

import threading
import time
from collections import deque
from weakref import WeakValueDictionary

from inbox.domain.events import InboxKey
from inbox.errors import StoreUnavailable

MAX_WAIT_SECONDS = 10
"""How long a poll waits for its turns, in total."""


class _PollQueue:
    """First come, first served. A lock would prefer a poll that asks again at once, such as one for many events."""

    def __init__(self) -> None:
        self.turns: deque[PollTurn] = deque()
        self.changed = threading.Condition()


class PollTurn:
    """Context manager in which a poll is the only one of its inbox. It can be entered repeatedly.

    Raises StoreUnavailable if the poll has to wait for more than MAX_WAIT_SECONDS in total.
    """

    def __init__(self, queue: _PollQueue) -> None:
        self._queue = queue
        self._deadline = time.monotonic() + MAX_WAIT_SECONDS
        self.waited_ms = 0

    def __enter__(self) -> None:
        began = time.monotonic()
        with self._queue.changed:
            self._queue.turns.append(self)
            timeout = max(0.0, self._deadline - began)
            if not self._queue.changed.wait_for(lambda: self._queue.turns[0] is self, timeout):
                self._queue.turns.remove(self)
                raise StoreUnavailable("Other polls of the inbox take too long.")
        self.waited_ms += int((time.monotonic() - began) * 1000)

    def __exit__(self, *_: object) -> None:
        with self._queue.changed:
            self._queue.turns.popleft()
            self._queue.changed.notify_all()


class PollQueues:
    """Makes the polls of an inbox in this process claim events one after the other.

    What a poll is about to claim may still go to another process. The next poll must neither skip it, or its consumer
    could get it after later events, nor claim it too: every failed condition costs a write unit.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        # A queue exists while a poll holds a turn of it.
        self._queues: WeakValueDictionary[InboxKey, _PollQueue] = WeakValueDictionary()

    def turn(self, inbox_key: InboxKey) -> PollTurn:
        with self._mutex:
            return PollTurn(self._queues.setdefault(inbox_key, _PollQueue()))
