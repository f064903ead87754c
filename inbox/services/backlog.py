"""The oldest claimable event of each enabled inbox."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from inbox.domain.events import DEFAULT_INBOX, Order, PageSize
from inbox.store.interface import EventStore, InboxStore, TenantStore

_OLDEST_ONE = PageSize(1, 1)


@dataclass(frozen=True, slots=True)
class Waiting:
    """An inbox and its oldest claimable event."""

    tenant_id: str
    inbox: str
    timestamp_ms: int
    age_seconds: int


@dataclass(frozen=True, slots=True)
class Backlog:
    tenants: TenantStore
    inboxes: InboxStore
    events: EventStore
    now_ms: Callable[[], int]

    def waiting(self) -> Iterator[Waiting]:
        """Yields every inbox with claimable events, except of suspended and deleted tenants."""
        for tenant in self.tenants.all():
            if tenant.has_access:
                yield from self._of_tenant(tenant.tenant_id)

    def _of_tenant(self, tenant_id: str) -> Iterator[Waiting]:
        default = [DEFAULT_INBOX] if self.inboxes.is_default_enabled(tenant_id) else []
        for inbox in (*default, *(each.name for each in self.inboxes.all(tenant_id))):
            now_ms = self.now_ms()
            for event in self.events.peek(tenant_id, inbox, Order.OLDEST, _OLDEST_ONE, now_ms).events:
                # Clocks of machines differ, so an event may be from the future.
                age_seconds = max(now_ms - event.timestamp_ms, 0) // 1000
                yield Waiting(tenant_id, inbox, event.timestamp_ms, age_seconds)
