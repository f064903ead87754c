"""In one process, polls of the same inbox take their events one after the other.

What a poll is about to take may still go to another process. So the next poll must not pass it by, or its consumer
could get it there after later ones. Nor must it go for it too: every condition that fails costs a write unit.
"""

import threading
import time
from collections import deque
from weakref import WeakValueDictionary

from inbox.errors import StoreUnavailable
from inbox.store.dynamodb.filling import MAX_SECONDS


class _Line:
    """Who came first is first: a plain lock goes to whoever asks again at once, such as a poll for many events."""

    def __init__(self) -> None:
        self.turns: deque[Turn] = deque()
        self.moved = threading.Condition()


class Turn:
    """One poll's, as often as it needs one and as long as its patience lasts."""

    def __init__(self, line: _Line) -> None:
        self._line = line
        self._until = time.monotonic() + MAX_SECONDS
        self.waited_ms = 0

    def __enter__(self) -> None:
        began = time.monotonic()
        with self._line.moved:
            self._line.turns.append(self)
            if not self._line.moved.wait_for(lambda: self._line.turns[0] is self, max(0.0, self._until - began)):
                self._line.turns.remove(self)
                raise StoreUnavailable("Other polls of the inbox take too long.")
        self.waited_ms += int((time.monotonic() - began) * 1000)

    def __exit__(self, *_: object) -> None:
        with self._line.moved:
            self._line.turns.popleft()
            self._line.moved.notify_all()


class Turns:
    def __init__(self) -> None:
        self._mutex = threading.Lock()
        # Only those of polls that are at work.
        self._lines: WeakValueDictionary[tuple[str, str], _Line] = WeakValueDictionary()

    def of(self, tenant_id: str, inbox: str) -> Turn:
        with self._mutex:
            return Turn(self._lines.setdefault((tenant_id, inbox), _Line()))
