"""Arrivals of events, which end the waits of long polls.

This service's own server (`inbox/server`) sets LONG_POLLS in the environ, and polls wait there without a thread. Under
any other WSGI server each waiting poll blocks a thread: see `claim_or_wait`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from inbox.domain.events import InboxKey
from inbox.store.interface import ArrivalWatch

# Keys of the WSGI environ.
LONG_POLLS = "inbox.long_polls"
"""The registry of waiting polls."""
LONG_POLL = "inbox.long_poll"
"""The poll of this request."""


@dataclass(slots=True)
class Arrivals:
    """Calls `listener` with an inbox in which this process has stored, released or replayed events, or that it deleted.

    `watch` reports the events of other processes. `on_waiting_change` is called with 1 or -1 when a poll starts or
    stops waiting.
    """

    watch: Callable[[], ArrivalWatch]
    now_ms: Callable[[], int]
    on_waiting_change: Callable[[int], object]
    listener: Callable[[InboxKey], object] = lambda _inbox_key: None

    def notify(self, tenant_id: str, inbox: str) -> None:
        self.listener((tenant_id, inbox))
