"""Sample events, receipts and tenants, and running functions concurrently."""

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any, TypeVar

from inbox.domain.events import Event, NewEvent, Order, PageSize, Receipt
from inbox.domain.tenants import AuditAction, AuditEntry, Tenant, TenantStatus
from inbox.store.interface import Store

# Milliseconds, in the future because DynamoDB Local deletes expired items by its own clock.
NOW = 4_102_444_800_123
MINUTE = 60_000
LATER_S = NOW // 1000 + 3600

Result = TypeVar("Result")


def new_event(payload: bytes = b'{"n":1}', event_type: str | None = "order.created") -> NewEvent:
    return NewEvent(str(uuid.uuid4()), event_type, payload)


def keyed_event(
    event_id: str, fingerprint: bytes = b"first", payload: bytes = b"{}", event_type: str | None = None
) -> NewEvent:
    return NewEvent(event_id, event_type, payload, fingerprint)


def numbered(count: int, event_type: str | None = "order.created") -> list[NewEvent]:
    return [new_event(b'{"n":%d}' % number, event_type) for number in range(count)]


def page_of(events: int, payload_bytes: int = 1_000_000) -> PageSize:
    return PageSize(events, payload_bytes)


def ids(events: Sequence[Event] | Sequence[NewEvent]) -> list[str]:
    return [event.event_id for event in events]


def in_order(events: Sequence[NewEvent], order: Order) -> list[str]:
    return ids(events)[:: 1 if order == Order.OLDEST else -1]


def receipt(event: Event) -> Receipt:
    assert event.lease is not None
    return Receipt(event.inbox, event.event_id, event.lease.claim_id)


def receipts(events: Sequence[Event]) -> list[Receipt]:
    return [receipt(event) for event in events]


def run_concurrently(workers: int, act: Callable[[int], Result]) -> list[Result]:
    """Calls `act` with the numbers of the workers, all at the same time. Returns the results."""
    start = Barrier(workers)

    def act_together(worker: int) -> Result:
        start.wait()
        return act(worker)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(act_together, range(workers)))


def tenant(tenant_id: str = "acme", at_ms: int = NOW, **members: Any) -> Tenant:
    """Returns a tenant that has just been created."""
    initial: dict[str, Any] = {
        "status": TenantStatus.REGISTERED,
        "created_at_ms": at_ms,
        "updated_at_ms": at_ms,
        "updated_by": "key_admin",
    }
    return Tenant(tenant_id=tenant_id, **initial | members)


def creation_entries(tenant: Tenant) -> list[AuditEntry]:
    """Returns the audit log of a new tenant."""
    return [AuditEntry(tenant.version, tenant.updated_at_ms, tenant.updated_by, AuditAction.CREATED, {})]


def next_version(tenant: Tenant, **members: Any) -> Tenant:
    return replace(tenant, updated_at_ms=tenant.updated_at_ms + 1, version=tenant.version + 1, **members)


def update_entries(tenant: Tenant) -> list[AuditEntry]:
    """Returns the audit entry of the update that made this version."""
    return [AuditEntry(tenant.version, tenant.updated_at_ms, tenant.updated_by, AuditAction.UPDATED, {})]


def create_tenants(store: Store, *tenants: Tenant) -> None:
    for each in tenants:
        store.tenants.create(each, creation_entries(each))


def update_tenant(store: Store, tenant: Tenant, **members: Any) -> Tenant:
    """Stores and returns the next version of the tenant."""
    after = next_version(tenant, **members)
    assert store.tenants.update(after, tenant.version, update_entries(after))
    return after
