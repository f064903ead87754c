"""Arrivals: events that have become claimable, and who wants to know."""

from collections.abc import Callable
from dataclasses import dataclass

from inbox.store.port import ArrivalWatch


def _ignore(_: object) -> None:
    pass


@dataclass(slots=True)
class Arrivals:
    """`listener` hears at once of tenants for which this process stored, released or replayed events.

    `watch` finds out about other processes. `on_waiting_change` counts polls that wait: 1 or -1.
    """

    watch: Callable[[], ArrivalWatch]
    now_ms: Callable[[], int]
    on_waiting_change: Callable[[int], object]
    listener: Callable[[str], object] = _ignore

    def notify(self, tenant_id: str) -> None:
        self.listener(tenant_id)
