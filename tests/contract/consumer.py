"""Shortens calls of a store for one inbox of a tenant."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inbox.domain.events import (
    DEFAULT_INBOX,
    Event,
    Listing,
    NewEvent,
    Order,
    Page,
    PutResult,
    Receipt,
    ReplayResult,
    Selection,
)
from inbox.domain.inboxes import Inbox
from inbox.domain.stats import Counts, Span, UndeliveredSummary
from inbox.store.interface import Store
from tests.contract.samples import LATER_S, MINUTE, NOW, numbered, page_of
from tests.engines.harnesses import Harness


@dataclass(frozen=True)
class Consumer:
    """Waits until indexes have caught up before it reads from them, unless `settles` is False.

    `at`, `until` and `since` are epoch milliseconds.
    """

    harness: Harness
    tenant_id: str = "acme"
    inbox: str = DEFAULT_INBOX
    settles: bool = True
    process: Store | None = None

    def in_tenant(self, tenant_id: str) -> "Consumer":
        return replace(self, tenant_id=tenant_id)

    def in_inbox(self, inbox: str) -> "Consumer":
        return replace(self, inbox=inbox)

    def in_another_process(self) -> "Consumer":
        return replace(self, process=self.harness.another())

    def without_settling(self) -> "Consumer":
        return replace(self, settles=False)

    def create_inbox(self, *event_types: str) -> bool:
        """Creates the inbox for events of these types, or for all."""
        return self._store.inboxes.save(self.tenant_id, Inbox(self.inbox, event_types or None, NOW))

    def put(self, events: Sequence[NewEvent], at: int = NOW, expires_at_s: int = LATER_S) -> list[PutResult]:
        return self._store.events.put(self.tenant_id, events, at, expires_at_s)

    def send(self, *events: NewEvent, at: int = NOW, expires_at_s: int = LATER_S) -> list[NewEvent]:
        """Like `put`, but returns the events."""
        self.put(events, at, expires_at_s)
        return list(events)

    def send_some(self, count: int, at: int = NOW) -> list[NewEvent]:
        return self.send(*numbered(count), at=at)

    def get(self, event_id: str, at: int = NOW) -> Event | None:
        return self._store.events.get(self.tenant_id, self.inbox, event_id, at)

    def peek(self, limit: int = 9, at: int = NOW, order: Order = Order.OLDEST) -> Page:
        return self._settled_store.events.peek(self.tenant_id, self.inbox, order, page_of(limit), at)

    def consume(self, limit: int = 9, at: int = NOW, attempt: str | None = None) -> Page:
        return self._settled_store.events.claim(self.tenant_id, self.inbox, page_of(limit), at, attempt=attempt)

    def lease(self, limit: int = 9, at: int = NOW, until: int | None = None, attempt: str | None = None) -> Page:
        """Leases for a minute unless `until` is given."""
        end = at + MINUTE if until is None else until
        return self._settled_store.events.claim(self.tenant_id, self.inbox, page_of(limit), at, end, attempt)

    def acknowledge(self, receipts: Sequence[Receipt], at: int = NOW) -> list[bool]:
        return self._store.events.acknowledge(self.tenant_id, receipts, at)

    def release(
        self, receipts: Sequence[Receipt], at: int = NOW, until: int = 0, *, failed: bool = False
    ) -> list[bool]:
        return self._store.events.release(self.tenant_id, receipts, until or at, at, failed=failed)

    def extend(self, receipts: Sequence[Receipt], until: int, at: int = NOW) -> list[bool]:
        return self._store.events.extend(self.tenant_id, receipts, until, at)

    def replay(self, event_id: str, at: int = NOW) -> Event | None:
        return self._store.events.replay(self.tenant_id, self.inbox, event_id, at)

    def replay_all(self, selection: Selection | None = None, limit: int = 9, at: int = NOW) -> ReplayResult:
        return self._settled_store.events.replay_all(self.tenant_id, selection or Selection(self.inbox), limit, at)

    def erase(self, event_id: str, at: int = NOW) -> bool:
        return self._store.events.erase(self.tenant_id, event_id, at)

    def page(
        self,
        selection: Selection | None = None,
        order: Order = Order.OLDEST,
        limit: int = 9,
        after: str | None = None,
        at: int = NOW,
    ) -> Listing:
        chosen = selection or Selection(self.inbox)
        return self._settled_store.events.page(self.tenant_id, chosen, order, page_of(limit), after, at)

    def history(
        self, selection: Selection | None = None, order: Order = Order.OLDEST, limit: int = 9, at: int = NOW
    ) -> list[Event]:
        """Returns the events of all pages."""
        listing = self.page(selection, order, limit, None, at)
        events = listing.events
        while listing.position is not None:
            listing = self.page(selection, order, limit, listing.position, at)
            events = events + listing.events
        return events

    def read_counts(self, span: Span = Span.DAY, since: int = 0) -> dict[tuple[int, str | None], Counts]:
        """Returns the counts by start and event type, after flushing those of this process."""
        self._store.counters.flush()
        listed = self._store.counters.list_counts(self.tenant_id, self.inbox, span, since)
        assert len({each[:2] for each in listed}) == len(listed)
        return {(start_ms, event_type): counts for start_ms, event_type, counts in listed}

    def totals(self, span: Span = Span.DAY) -> Counts:
        totals = Counts()
        for counts in self.read_counts(span).values():
            totals = totals.plus(counts)
        return totals

    def undelivered(self, at: int = NOW) -> UndeliveredSummary:
        return self._settled_store.counters.undelivered(self.tenant_id, self.inbox, at)

    def recount(self, since: int = 0, at: int = NOW) -> int:
        return self._store.counters.recount(self.tenant_id, since, at)

    @property
    def _store(self) -> Store:
        return self.process or self.harness.store

    @property
    def _settled_store(self) -> Store:
        if self.settles:
            self.harness.settle()
        return self._store
