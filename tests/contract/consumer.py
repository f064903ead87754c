"""What somebody does with one inbox of a tenant, in few words. Lets a lagging index catch up before it looks there."""

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
from tests.contract.samples import LATER, MINUTE, NOW, numbered, page_of
from tests.engines.harnesses import Harness


@dataclass(frozen=True)
class Consumer:
    harness: Harness
    tenant_id: str = "acme"
    inbox: str = DEFAULT_INBOX
    waits: bool = True
    process: Store | None = None

    def of(self, tenant_id: str) -> "Consumer":
        return replace(self, tenant_id=tenant_id)

    def at(self, inbox: str) -> "Consumer":
        return replace(self, inbox=inbox)

    def in_another_process(self) -> "Consumer":
        return replace(self, process=self.harness.another())

    def in_a_hurry(self) -> "Consumer":
        """Takes the index as it is."""
        return replace(self, waits=False)

    def make(self, *event_types: str) -> bool:
        """The inbox, for events of these types or, without any, for all."""
        return self._store.inboxes.save(self.tenant_id, Inbox(self.inbox, event_types or None, NOW))

    def put(self, events: Sequence[NewEvent], at: int = NOW, until_s: int = LATER) -> list[PutResult]:
        return self._store.events.put(self.tenant_id, events, at, until_s)

    def send(self, *events: NewEvent, at: int = NOW, until_s: int = LATER) -> list[NewEvent]:
        self.put(events, at, until_s)
        return list(events)

    def send_some(self, count: int, at: int = NOW) -> list[NewEvent]:
        return self.send(*numbered(count), at=at)

    def get(self, event_id: str, at: int = NOW) -> Event | None:
        return self._store.events.get(self.tenant_id, self.inbox, event_id, at)

    def peek(self, most: int = 9, at: int = NOW, order: Order = Order.OLDEST) -> Page:
        return self._indexed.events.peek(self.tenant_id, self.inbox, order, page_of(most), at)

    def consume(self, most: int = 9, at: int = NOW, attempt: str | None = None) -> Page:
        return self._indexed.events.claim(self.tenant_id, self.inbox, page_of(most), at, attempt=attempt)

    def lease(self, most: int = 9, at: int = NOW, until: int | None = None, attempt: str | None = None) -> Page:
        """For a minute where nothing else is said."""
        end = at + MINUTE if until is None else until
        return self._indexed.events.claim(self.tenant_id, self.inbox, page_of(most), at, end, attempt)

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

    def replay_all(self, selection: Selection | None = None, most: int = 9, at: int = NOW) -> ReplayResult:
        return self._indexed.events.replay_all(self.tenant_id, selection or Selection(self.inbox), most, at)

    def erase(self, event_id: str, at: int = NOW) -> bool:
        return self._store.events.erase(self.tenant_id, event_id, at)

    def page(
        self,
        selection: Selection | None = None,
        order: Order = Order.OLDEST,
        most: int = 9,
        after: str | None = None,
        at: int = NOW,
    ) -> Listing:
        chosen = selection or Selection(self.inbox)
        return self._indexed.events.page(self.tenant_id, chosen, order, page_of(most), after, at)

    def history(
        self, selection: Selection | None = None, order: Order = Order.OLDEST, most: int = 9, at: int = NOW
    ) -> list[Event]:
        """Every page of it, one after the other."""
        listing = self.page(selection, order, most, None, at)
        events = listing.events
        while listing.position is not None:
            listing = self.page(selection, order, most, listing.position, at)
            events = events + listing.events
        return events

    def counted(self, span: Span = Span.DAY, since: int = 0) -> dict[tuple[int, str | None], Counts]:
        """By when the span began and by type, of what was counted in this process and written down by others."""
        self._store.counters.flush()
        counted = self._store.counters.list_counts(self.tenant_id, self.inbox, span, since)
        assert len({each[:2] for each in counted}) == len(counted)
        return {(start_ms, event_type): counts for start_ms, event_type, counts in counted}

    def totals(self, span: Span = Span.DAY) -> Counts:
        totals = Counts()
        for counts in self.counted(span).values():
            totals = totals.plus(counts)
        return totals

    def undelivered(self, at: int = NOW) -> UndeliveredSummary:
        return self._indexed.counters.undelivered(self.tenant_id, self.inbox, at)

    def recount(self, since: int = 0, at: int = NOW) -> int:
        return self._store.counters.recount(self.tenant_id, since, at)

    @property
    def _store(self) -> Store:
        return self.process or self.harness.store

    @property
    def _indexed(self) -> Store:
        if self.waits:
            self.harness.settle()
        return self._store
