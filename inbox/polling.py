"""Polling: events come out."""

from collections.abc import Callable

from inbox.events import Event, Order, Page, PageSize, Status
from inbox.store.port import EventStore

# 500 events of the largest size would be 125 MB. Zapier takes answers of up to 20 MB.
_MOST_PAYLOAD_BYTES = 16 * 1024 * 1024


class Polling:
    def __init__(self, store: EventStore, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._now_ms = now_ms

    def consume(self, tenant_id: str, limit: int) -> Page:
        """Hands out the oldest undelivered events, which are delivered from then on."""
        return self._store.claim(tenant_id, PageSize(limit, _MOST_PAYLOAD_BYTES), self._now_ms())

    def peek(self, tenant_id: str, limit: int, order: Order) -> Page:
        """Shows undelivered events and changes nothing."""
        size = PageSize(limit, _MOST_PAYLOAD_BYTES)
        return self._store.page(tenant_id, Status.UNDELIVERED, order, size, self._now_ms())

    def look_up(self, tenant_id: str, event_id: str) -> Event | None:
        """One event, in whatever status."""
        return self._store.get(tenant_id, event_id, self._now_ms())
