"""Polling: events come out, and what was leased is settled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inbox.domain.events import MAX_PAYLOAD_BYTES, Order, Page, PageSize, Receipt
from inbox.domain.receipts import parse_receipt
from inbox.services.inboxes import require_inbox
from inbox.store.interface import EventStore, InboxStore


@dataclass(frozen=True, slots=True)
class SettleResult:
    """The ids of the events that it was done to, and the receipts that hold no more."""

    event_ids: list[str]
    lost: list[str]


class ConsumeService:
    """`on_arrival` is called with the tenant ID and the inbox after events were released."""

    def __init__(
        self,
        store: EventStore,
        inboxes: InboxStore,
        now_ms: Callable[[], int],
        lease_seconds: int,
        on_arrival: Callable[[str, str], object] = lambda _tenant_id, _inbox: None,
    ) -> None:
        self._on_arrival = on_arrival
        self._store = store
        self._inboxes = inboxes
        self._now_ms = now_ms
        self._lease_seconds = lease_seconds

    def consume(self, tenant_id: str, inbox: str, limit: int, attempt: str | None = None) -> Page:
        """Hands out the oldest undelivered events, which are delivered from then on."""
        require_inbox(self._inboxes, tenant_id, inbox)
        return self._store.claim(tenant_id, inbox, _size(limit), self._now_ms(), attempt=attempt)

    def lease(
        self, tenant_id: str, inbox: str, limit: int, lease_seconds: int | None = None, attempt: str | None = None
    ) -> Page:
        """Hands them out for a while: who does not acknowledge them in time has lost them to the next."""
        require_inbox(self._inboxes, tenant_id, inbox)
        now_ms = self._now_ms()
        return self._store.claim(tenant_id, inbox, _size(limit), now_ms, self._end(now_ms, lease_seconds), attempt)

    def peek(self, tenant_id: str, inbox: str, limit: int, order: Order) -> Page:
        """Shows undelivered events and changes nothing."""
        require_inbox(self._inboxes, tenant_id, inbox)
        return self._store.peek(tenant_id, inbox, order, _size(limit), self._now_ms())

    def acknowledge(self, tenant_id: str, receipts: Sequence[str]) -> SettleResult:
        """Marks leased events delivered."""
        return _settle(receipts, lambda held: self._store.acknowledge(tenant_id, held, self._now_ms()))

    def release(
        self, tenant_id: str, receipts: Sequence[str], delay_seconds: int, *, failed: bool = False
    ) -> SettleResult:
        """Gives leased events back: any poll may claim them after the delay. `failed` counts as a lost lease."""
        now_ms = self._now_ms()
        available_at_ms = now_ms + delay_seconds * 1000

        def release(held: Sequence[Receipt]) -> list[bool]:
            released = self._store.release(tenant_id, held, available_at_ms, now_ms, failed=failed)
            if not delay_seconds:
                for inbox in {receipt.inbox for receipt in held}:
                    self._on_arrival(tenant_id, inbox)
            return released

        return _settle(receipts, release)

    def extend(self, tenant_id: str, receipts: Sequence[str], lease_seconds: int | None = None) -> SettleResult:
        """Makes leases last so long from now on."""
        now_ms = self._now_ms()
        end_ms = self._end(now_ms, lease_seconds)
        return _settle(receipts, lambda held: self._store.extend(tenant_id, held, end_ms, now_ms))

    def _end(self, now_ms: int, lease_seconds: int | None) -> int:
        return now_ms + (self._lease_seconds if lease_seconds is None else lease_seconds) * 1000


def _size(limit: int) -> PageSize:
    return PageSize(limit, MAX_PAYLOAD_BYTES)


def _settle(texts: Sequence[str], act: Callable[[Sequence[Receipt]], list[bool]]) -> SettleResult:
    """Each receipt once, in the order given. One that cannot be read stands for nothing, so it is lost."""
    receipts = {text: parse_receipt(text) for text in texts}
    held = [receipt for receipt in receipts.values() if receipt is not None]
    done = {receipt for receipt, holds in zip(held, act(held), strict=True) if holds} if held else set()
    return SettleResult(
        [receipt.event_id for receipt in receipts.values() if receipt in done and receipt is not None],
        [text for text, receipt in receipts.items() if receipt not in done],
    )
