"""Long polling: a poll that finds no events waits for one.

This service's own server (`inbox/server`) sets LONG_POLLS in the environ, and polls wait there without a thread. Under
any other WSGI server each waiting poll blocks a thread, which asks the store every 0.2 seconds.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from inbox.domain.events import InboxKey, Page
from inbox.store.interface import ArrivalWatch

# Keys of the WSGI environ.
LONG_POLLS = "inbox.long_polls"
"""The registry of waiting polls."""
LONG_POLL = "inbox.long_poll"
"""The poll of this request."""

_PAUSE_SECONDS = 0.2


@dataclass(slots=True)
class Arrivals:
    """Calls `listener` with an inbox in which this process has stored, released or replayed events.

    `watch` reports the events of other processes. `on_waiting_change` is called with 1 or -1 when a poll starts or
    stops waiting.
    """

    watch: Callable[[], ArrivalWatch]
    now_ms: Callable[[], int]
    on_waiting_change: Callable[[int], object]
    listener: Callable[[InboxKey], object] = lambda _inbox_key: None

    def notify(self, tenant_id: str, inbox: str) -> None:
        self.listener((tenant_id, inbox))


class BlockingPolls:
    """Holds a poll in its thread. `waiting` returns a context manager that is entered while it waits."""

    def __init__(self, waiting: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        self._waiting = waiting

    def claim_or_wait(self, seconds: int, claim: Callable[[], Page], client_is_gone: Callable[[], bool]) -> Page:
        """Calls `claim` until it returns events, `seconds` have passed or the client has disconnected."""
        deadline = time.monotonic() + seconds
        page = claim()
        if page.events:
            return page
        with self._waiting():
            while not page.events and (left := deadline - time.monotonic()) > 0:
                time.sleep(min(_PAUSE_SECONDS, left))
                if client_is_gone():
                    break
                page = claim()
        return page
