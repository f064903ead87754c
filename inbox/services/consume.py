"""Polls, and acknowledging, releasing and extending leases."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inbox.domain.events import MAX_PAYLOAD_BYTES, Order, Page, PageSize, Receipt
from inbox.domain.receipts import parse_receipt
from inbox.services.inboxes import require_inbox
from inbox.store.interface import EventStore, InboxStore


@dataclass(frozen=True, slots=True)
class SettleResult:
    """`event_ids` are the settled events; `lost` are the receipts that are malformed or whose lease has ended."""

    event_ids: list[str]
    lost: list[str]


@dataclass(frozen=True, slots=True)
class ConsumeService:
    """`on_arrival` is called with the tenant ID and each inbox of a release without a delay."""

    store: EventStore
    inboxes: InboxStore
    now_ms: Callable[[], int]
    lease_seconds: int
    on_arrival: Callable[[str, str], object]

    def consume(self, tenant_id: str, inbox: str, limit: int, attempt: str | None = None) -> Page:
        """Marks the oldest undelivered events delivered and returns them."""
        require_inbox(self.inboxes, tenant_id, inbox)
        return self.store.claim(tenant_id, inbox, _size(limit), self.now_ms(), attempt=attempt)

    def lease(
        self, tenant_id: str, inbox: str, limit: int, lease_seconds: int | None = None, attempt: str | None = None
    ) -> Page:
        """Leases the oldest undelivered events and returns them."""
        require_inbox(self.inboxes, tenant_id, inbox)
        now_ms = self.now_ms()
        lease_until_ms = self._lease_until_ms(now_ms, lease_seconds)
        return self.store.claim(tenant_id, inbox, _size(limit), now_ms, lease_until_ms, attempt)

    def peek(self, tenant_id: str, inbox: str, limit: int, order: Order) -> Page:
        """Returns undelivered events. Changes nothing."""
        require_inbox(self.inboxes, tenant_id, inbox)
        return self.store.peek(tenant_id, inbox, order, _size(limit), self.now_ms())

    def acknowledge(self, tenant_id: str, receipts: Sequence[str]) -> SettleResult:
        """Marks leased events delivered."""
        return _settle(receipts, lambda parsed: self.store.acknowledge(tenant_id, parsed, self.now_ms()))

    def release(
        self, tenant_id: str, receipts: Sequence[str], delay_seconds: int, *, failed: bool = False
    ) -> SettleResult:
        """Makes leased events undelivered again after the delay. `failed` counts as a lost lease."""
        now_ms = self.now_ms()
        available_at_ms = now_ms + delay_seconds * 1000

        def release(parsed: Sequence[Receipt]) -> list[bool]:
            released = self.store.release(tenant_id, parsed, available_at_ms, now_ms, failed=failed)
            if not delay_seconds:
                for inbox in {receipt.inbox for receipt in parsed}:
                    self.on_arrival(tenant_id, inbox)
            return released

        return _settle(receipts, release)

    def extend(self, tenant_id: str, receipts: Sequence[str], lease_seconds: int | None = None) -> SettleResult:
        """Makes leases end `lease_seconds` from now."""
        now_ms = self.now_ms()
        lease_until_ms = self._lease_until_ms(now_ms, lease_seconds)
        return _settle(receipts, lambda parsed: self.store.extend(tenant_id, parsed, lease_until_ms, now_ms))

    def _lease_until_ms(self, now_ms: int, lease_seconds: int | None) -> int:
        return now_ms + (self.lease_seconds if lease_seconds is None else lease_seconds) * 1000


def _size(limit: int) -> PageSize:
    return PageSize(limit, MAX_PAYLOAD_BYTES)


def _settle(texts: Sequence[str], settle: Callable[[Sequence[Receipt]], list[bool]]) -> SettleResult:
    """Settles each receipt once, in the given order. A malformed receipt is lost."""
    receipts = {text: parse_receipt(text) for text in texts}
    parsed = [receipt for receipt in receipts.values() if receipt is not None]
    done = {receipt for receipt, settled in zip(parsed, settle(parsed), strict=True) if settled} if parsed else set()
    return SettleResult(
        [receipt.event_id for receipt in receipts.values() if receipt in done and receipt is not None],
        [text for text, receipt in receipts.items() if receipt not in done],
    )
