"""Long polls under a WSGI server of another project: each waiting poll blocks a thread."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from inbox.domain.events import Page

_PAUSE_SECONDS = 0.2


@dataclass(slots=True)
class BlockingPolls:
    """Holds a poll in its thread. `waiting` returns a context manager that is entered while it waits."""

    waiting: Callable[[], AbstractContextManager[object]] = nullcontext

    def claim_or_wait(self, seconds: int, claim: Callable[[], Page], client_is_gone: Callable[[], bool]) -> Page:
        """Calls `claim` until it returns events, `seconds` have passed or the client has disconnected."""
        deadline = time.monotonic() + seconds
        page = claim()
        if page.events:
            return page
        with self.waiting():
            while not page.events and (left := deadline - time.monotonic()) > 0:
                time.sleep(min(_PAUSE_SECONDS, left))
                if client_is_gone():
                    break
                page = claim()
        return page
