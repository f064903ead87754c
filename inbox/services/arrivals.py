"""Tells long polls which inboxes have new events."""

from collections.abc import Callable
from dataclasses import dataclass

from inbox.domain.events import InboxKey
from inbox.store.interface import ArrivalWatch


def _ignore(_: object) -> None:
    pass


@dataclass(slots=True)
class Arrivals:
    """Calls `listener` with an inbox in which this process has stored, released or replayed events.

    `watch` reports the events of other processes. `on_waiting_change` is called with 1 or -1 when a poll starts or
    stops waiting.
    """

    watch: Callable[[], ArrivalWatch]
    now_ms: Callable[[], int]
    on_waiting_change: Callable[[int], object]
    listener: Callable[[InboxKey], object] = _ignore

    def notify(self, tenant_id: str, inbox: str) -> None:
        self.listener((tenant_id, inbox))
