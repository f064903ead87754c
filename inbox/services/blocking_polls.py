"""Long polling: an empty answer is held back until an event comes.

The server of this service (`inbox/server`) puts LONG_POLLS into the environ, and polls wait there without a thread.
Under any other WSGI server each wait holds a thread, which polls the store every 0.2 seconds.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from inbox.domain.events import Page

LONG_POLLS = "inbox.long_polls"
LONG_POLL = "inbox.long_poll"
"""In the environ: where polls can wait without a thread, and the poll of this request."""

_PAUSE_SECONDS = 0.2


class ThreadWaits:
    """`held` returns a context manager that is open while a poll waits."""

    def __init__(self, held: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        self._held = held

    def claim_or_wait(self, seconds: int, take: Callable[[], Page], client_is_gone: Callable[[], bool]) -> Page:
        """Calls `take` until it returns events, `seconds` have passed or the client has disconnected."""
        deadline = time.monotonic() + seconds
        page = take()
        if page.events:
            return page
        with self._held():
            while not page.events and (left := deadline - time.monotonic()) > 0:
                time.sleep(min(_PAUSE_SECONDS, left))
                if client_is_gone():
                    break
                page = take()
        return page
