"""Long polling: an empty answer is held back until an event comes.

By asking the store again and again, which works through any number of processes and machines and needs nothing from a
store. A wait holds a thread, so only so many wait at a time in a process: the other threads are there for sending.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from threading import BoundedSemaphore

from inbox.events import Page

_PAUSE_SECONDS = 0.2


class Waits:
    """`held` is entered for as long as a poll is held back."""

    def __init__(self, most: int, held: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        self._held = held
        self._places = BoundedSemaphore(most)
        self._stopping = False

    def stop(self) -> None:
        """Ends every wait within a pause."""
        # A plain flag and no lock: this runs in a signal handler, which may have interrupted itself.
        self._stopping = True

    def until_events(self, look: Callable[[], Page], seconds: int, hung_up: Callable[[], bool]) -> Page:
        """What `look` finds, at the latest after so many seconds. It is not asked again once the client has hung up.

        Where too many wait already the first answer is the last.
        """
        deadline = time.monotonic() + seconds
        page = look()
        if page.events or not self._places.acquire(blocking=False):
            return page
        try:
            with self._held():
                while not page.events and not self._stopping and (left := deadline - time.monotonic()) > 0:
                    time.sleep(min(_PAUSE_SECONDS, left))
                    if hung_up():
                        break
                    page = look()
            return page
        finally:
            self._places.release()
