"""What can be done to a tenant's inboxes, in any order: each act is done to a store and to the model, and compared."""

from dataclasses import replace
from itertools import cycle, product

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from inbox.domain.events import ATTEMPT_MS, DEFAULT_INBOX, Event, Lease, Order, PageSize, Receipt, Selection, Status
from inbox.domain.inboxes import Inbox
from inbox.domain.stats import Counts, Span, UndeliveredSummary
from inbox.errors import EventLeased
from inbox.store.interface import EventStore, Store
from tests.contract.model import Model
from tests.contract.samples import NOW, ids, new_event, page_of, receipts
from tests.engines.harnesses import MAX_DELIVERIES, Harness

NAMED = Inbox("named", ("order.*",), NOW)
DAY = 86_400_000

INBOXES = st.sampled_from([DEFAULT_INBOX, NAMED.name])
TYPES = st.sampled_from(["order.created", "order.shipped", "invoice", None])
ATTEMPTS = st.sampled_from([None, "a"])
ORDERS = st.sampled_from(Order)
ACTS = st.sampled_from(["acknowledge", "release", "fail", "extend"])
SIZES = st.builds(page_of, st.integers(1, 4), st.sampled_from([1_000_000, 14]))
# The same few lengths for everything, so that ends are met to the millisecond, and missed by one.
LENGTHS = st.sampled_from([10_000, 1_000, 9_999, 999, 1])
NONE = st.just(0)
LONG = st.sampled_from([ATTEMPT_MS - 1, ATTEMPT_MS, 1_000_000])
AGES = st.none() | LENGTHS | LONG
# Which of the events or receipts that there have been, the latest first.
PICK = st.integers(0, 7)
PICKS = st.lists(PICK, min_size=1, max_size=4)
SELECTIONS = st.tuples(INBOXES, st.none() | st.sampled_from(Status), st.none() | TYPES, AGES, AGES)
Parts = tuple[str, Status | None, str | None, int | None, int | None]


class Lives(RuleBasedStateMachine):
    def __init__(self, harness: Harness, elsewhere: Store, number: int) -> None:
        super().__init__()
        self.harness = harness
        self.elsewhere = elsewhere
        self.tenant_id = f"tenant-{number}"
        # A process never goes back behind the newest event that it put, for whichever tenant.
        self.now = NOW + number * DAY
        self.model = Model([NAMED], MAX_DELIVERIES)
        self.sent: list[str] = []
        self.receipts: list[Receipt] = []
        self.claims: dict[str, str] = {}
        self.retention_seconds = 0
        self.looks = cycle(product((DEFAULT_INBOX, NAMED.name), (*Order, None)))

    @property
    def events(self) -> EventStore:
        """The same store, through another process every other millisecond."""
        return self.process.events

    @property
    def process(self) -> Store:
        return self.harness.store if self.now % 2 else self.elsewhere

    @initialize(types=st.lists(TYPES, min_size=1, max_size=8), retention=st.sampled_from([40_000, 4_000, 310]))
    def begin(self, types: list[str | None], retention: int) -> None:
        self.retention_seconds = retention
        self.harness.store.inboxes.save(self.tenant_id, NAMED)
        self.send(types)

    @rule(types=st.lists(TYPES, min_size=1, max_size=4))
    def send(self, types: list[str | None]) -> None:
        events = [new_event(event_type=each) for each in types]
        expires_at_s = self.now // 1000 + self.retention_seconds
        self.harness.store.events.put(self.tenant_id, events, self.now, expires_at_s)
        self.model.put(events, self.now, expires_at_s)
        self.sent = ids(events) + self.sent

    @rule()
    def switch_default(self) -> None:
        self.model.default_enabled = not self.model.default_enabled
        self.process.inboxes.set_default_enabled(self.tenant_id, self.model.default_enabled)

    @rule(length=LENGTHS | LENGTHS | LONG)
    def wait(self, length: int) -> None:
        self.now += length
        self.model.pass_time(self.now)

    @rule(inbox=INBOXES, size=SIZES, times=st.integers(1, MAX_DELIVERIES))
    def lose_leases(self, inbox: str, size: PageSize, times: int) -> None:
        for _ in range(times):
            self.receipts += self.claim(inbox, size, self.now + 1_000, None)
            self.wait(1_000)

    @rule()
    def restart(self) -> None:
        self.harness.reopen()

    @rule(inbox=INBOXES, size=SIZES, attempt=ATTEMPTS)
    def consume(self, inbox: str, size: PageSize, attempt: str | None) -> None:
        self.claim(inbox, size, None, attempt)

    @rule(inbox=INBOXES, size=SIZES, length=LENGTHS | LONG, attempt=ATTEMPTS)
    def lease(self, inbox: str, size: PageSize, length: int, attempt: str | None) -> None:
        self.receipts = self.claim(inbox, size, self.now + length, attempt) + self.receipts

    @rule(inbox=INBOXES, size=SIZES, act=ACTS, pause=NONE | LENGTHS, length=NONE | LENGTHS)
    def lease_and_hand_in(self, inbox: str, size: PageSize, act: str, pause: int, length: int) -> None:
        self.lease(inbox, size, 10_000, None)
        self.wait(pause)
        if self.receipts:
            self.hand_in(act, [0, 1], length)

    def claim(self, inbox: str, size: PageSize, until_ms: int | None, attempt: str | None) -> list[Receipt]:
        page = self.events.claim(self.tenant_id, inbox, size, self.now, until_ms, attempt)
        expected = self.model.claim(inbox, size, self.now, until_ms, attempt)
        for event, ours in zip(page.events, expected.events, strict=False):
            if event.lease is not None and ours.lease is not None:
                self.claims.setdefault(event.lease.claim_id, ours.lease.claim_id)
        assert (self.in_our_words(page.events), page.more) == (expected.events, expected.more)
        return receipts([event for event in page.events if event.lease])

    @precondition(lambda self: self.receipts)
    @rule(act=ACTS, picks=PICKS, length=NONE | LENGTHS)
    def hand_in(self, act: str, picks: list[int], length: int) -> None:
        theirs = [self.receipts[pick % len(self.receipts)] for pick in picks]
        ours = [replace(one, claim_id=self.claims[one.claim_id]) for one in theirs]
        match act:
            case "acknowledge":
                outcomes = self.events.acknowledge(self.tenant_id, theirs, self.now)
                assert outcomes == self.model.acknowledge(ours, self.now)
            case "release" | "fail":
                failed = act == "fail"
                outcomes = self.events.release(self.tenant_id, theirs, self.now + length, self.now, failed=failed)
                assert outcomes == self.model.release(ours, self.now + length, failed)
            case "extend":
                outcomes = self.events.extend(self.tenant_id, theirs, self.now + 1 + length, self.now)
                assert outcomes == self.model.extend(ours, self.now + 1 + length)

    @rule(inbox=INBOXES, pick=PICK)
    def replay(self, inbox: str, pick: int) -> None:
        event_id = self.sent[pick % len(self.sent)]
        try:
            expected = self.model.replay(inbox, event_id)
        except EventLeased:
            with pytest.raises(EventLeased):
                self.events.replay(self.tenant_id, inbox, event_id, self.now)
        else:
            assert self.events.replay(self.tenant_id, inbox, event_id, self.now) == expected

    @rule(parts=SELECTIONS, most=st.integers(1, 4))
    def replay_all(self, parts: Parts, most: int) -> None:
        selection = self.selection(*parts)
        replayed = self.events.replay_all(self.tenant_id, selection, most, self.now)
        assert replayed == self.model.replay_all(selection, most)

    @rule(pick=PICK)
    def erase(self, pick: int) -> None:
        event_id = self.sent[pick % len(self.sent)]
        assert self.events.erase(self.tenant_id, event_id, self.now) == self.model.erase(event_id)

    @rule(parts=SELECTIONS, order=ORDERS, size=SIZES)
    def look_back(self, parts: Parts, order: Order, size: PageSize) -> None:
        selection = self.selection(*parts)
        assert self.history(selection, order, size) == self.model.page(selection, order)

    @rule(inbox=INBOXES, pick=PICK)
    def get(self, inbox: str, pick: int) -> None:
        event_id = self.sent[pick % len(self.sent)]
        found, expected = self.events.get(self.tenant_id, inbox, event_id, self.now), self.model.get(inbox, event_id)
        assert self.in_our_words([found] if found else []) == ([expected.event] if expected else [])

    @invariant()
    def look(self) -> None:
        """What somebody may take, of one inbox after the other: from both ends, and how many there are."""
        inbox, order = next(self.looks)
        if order is None:
            self.count_undelivered(inbox)
        else:
            self.peek(inbox, order)

    def peek(self, inbox: str, order: Order) -> None:
        page = self.events.peek(self.tenant_id, inbox, order, page_of(3), self.now)
        assert page == self.model.peek(inbox, order, page_of(3), self.now)

    def count_undelivered(self, inbox: str) -> None:
        waiting = self.model.eligible(inbox, self.now)
        oldest_ms = waiting[0].event.timestamp_ms if waiting else None
        undelivered = self.process.counters.undelivered(self.tenant_id, inbox, self.now)
        assert undelivered == UndeliveredSummary(len(waiting), oldest_ms)

    def teardown(self) -> None:
        for store in (self.harness.store, self.elsewhere):
            store.counters.flush()
        for inbox in (DEFAULT_INBOX, NAMED.name):
            for span in Span:
                counted = self.process.counters.list_counts(self.tenant_id, inbox, span, 0)
                # When an event has died is up to the store, and whether anybody noticed before it was erased.
                for name in set(Counts._fields) - {"dead"}:
                    total = sum(getattr(each.counts, name) for each in counted)
                    assert (name, total) == (name, self.model.counts[inbox, name])
            assert self.history(Selection(inbox), Order.OLDEST, page_of(100)) == self.model.page(
                Selection(inbox), Order.OLDEST
            )

    def history(self, selection: Selection, order: Order, size: PageSize) -> list[Event]:
        listing = self.events.page(self.tenant_id, selection, order, size, None, self.now)
        events = listing.events
        while listing.position is not None:
            listing = self.events.page(self.tenant_id, selection, order, size, listing.position, self.now)
            events = events + listing.events
        return self.in_our_words(events)

    def selection(
        self, inbox: str, status: Status | None, event_type: str | None, since: int | None, until: int | None
    ) -> Selection:
        return Selection(inbox, status, event_type, since and self.now - since, until and self.now + 1 - until)

    def in_our_words(self, events: list[Event]) -> list[Event]:
        """The model has its own names for claims."""
        return [
            event._replace(lease=Lease(self.claims[event.lease.claim_id], event.lease.expires_at_ms))
            if event.lease
            else event
            for event in events
        ]
