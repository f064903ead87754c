"""The oldest claimable event of each enabled inbox."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from inbox.domain.events import DEFAULT_INBOX, Order, PageSize
from inbox.store.interface import Store

_OLDEST_ONE = PageSize(1, 1)


@dataclass(frozen=True, slots=True)
class InboxBacklog:
    """An inbox and its oldest claimable event."""

    tenant_id: str
    inbox: str
    timestamp_ms: int
    age_seconds: int


def find_backlog(store: Store, now_ms: Callable[[], int]) -> Iterator[InboxBacklog]:
    """Yields every enabled inbox with claimable events, except for suspended and deleted tenants."""
    for tenant_id in (tenant.tenant_id for tenant in store.tenants.all() if tenant.has_access):
        default = [DEFAULT_INBOX] if store.inboxes.is_default_enabled(tenant_id) else []
        for inbox in (*default, *(each.name for each in store.inboxes.all(tenant_id))):
            looked_at_ms = now_ms()
            for event in store.events.peek(tenant_id, inbox, Order.OLDEST, _OLDEST_ONE, looked_at_ms).events:
                # Clocks of machines differ, so an event may be from the future.
                age_seconds = max(looked_at_ms - event.timestamp_ms, 0) // 1000
                yield InboxBacklog(tenant_id, inbox, event.timestamp_ms, age_seconds)
