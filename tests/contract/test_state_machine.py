"""Random operations on a tenant's inboxes: every engine must return the same as the model."""

from dataclasses import replace
from itertools import count, cycle, product

import pytest
from hypothesis import seed
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from inbox.domain.events import ATTEMPT_MS, DEFAULT_INBOX, Event, Lease, Order, PageSize, Receipt, Selection, Status
from inbox.domain.inboxes import Inbox
from inbox.domain.stats import Counts, Span, UndeliveredSummary
from inbox.errors import EventLeased
from inbox.store.interface import EventStore, Store
from tests.contract.model import Model
from tests.contract.samples import NOW, ids, new_event, page_of, receipts
from tests.engines.harnesses import MAX_DELIVERIES, Harness

NAMED = Inbox("named", ("order.*",), NOW)
DAY_MS = 86_400_000

INBOXES = st.sampled_from([DEFAULT_INBOX, NAMED.name])
TYPES = st.sampled_from(["order.created", "order.shipped", "invoice", None])
ATTEMPTS = st.sampled_from([None, "a"])
ORDERS = st.sampled_from(Order)
ACTIONS = st.sampled_from(["acknowledge", "release", "fail", "extend"])
SIZES = st.builds(page_of, st.integers(1, 4), st.sampled_from([1_000_000, 14]))
# Few durations, so that actions meet the exact ends of leases and delays, and miss them by a millisecond.
DURATIONS_MS = st.sampled_from([10_000, 1_000, 9_999, 999, 1])
NO_DURATION = st.just(0)
LONG_DURATIONS_MS = st.sampled_from([ATTEMPT_MS - 1, ATTEMPT_MS, 1_000_000])
AGES_MS = st.none() | DURATIONS_MS | LONG_DURATIONS_MS
# Index of an earlier event or receipt, latest first.
PICK = st.integers(0, 7)
PICKS = st.lists(PICK, min_size=1, max_size=4)
SELECTIONS = st.tuples(INBOXES, st.none() | st.sampled_from(Status), st.none() | TYPES, AGES_MS, AGES_MS)
Criteria = tuple[str, Status | None, str | None, int | None, int | None]


class InboxStateMachine(RuleBasedStateMachine):
    def __init__(self, harness: Harness, other_process: Store, number: int) -> None:
        super().__init__()
        self.harness = harness
        self.other_process = other_process
        self.tenant_id = f"tenant-{number}"
        # A process never uses a timestamp before its newest event, of any tenant.
        self.now_ms = NOW + number * DAY_MS
        self.model = Model([NAMED], MAX_DELIVERIES)
        self.sent: list[str] = []
        self.receipts: list[Receipt] = []
        # The model's claim IDs by event ID and the store's claim ID, which is only unique for one event.
        self.claims: dict[tuple[str, str], str] = {}
        self.retention_seconds = 0
        self.inspections = cycle(product((DEFAULT_INBOX, NAMED.name), (*Order, None)))

    @property
    def events(self) -> EventStore:
        """The store, accessed through both processes in turn."""
        return self.process.events

    @property
    def process(self) -> Store:
        return self.harness.store if self.now_ms % 2 else self.other_process

    @initialize(types=st.lists(TYPES, min_size=1, max_size=8), retention_seconds=st.sampled_from([40_000, 4_000, 310]))
    def begin(self, types: list[str | None], retention_seconds: int) -> None:
        self.retention_seconds = retention_seconds
        self.harness.store.inboxes.save(self.tenant_id, NAMED)
        self.send(types)

    @rule(types=st.lists(TYPES, min_size=1, max_size=4))
    def send(self, types: list[str | None]) -> None:
        events = [new_event(event_type=each) for each in types]
        expires_at_s = self.now_ms // 1000 + self.retention_seconds
        self.harness.store.events.put(self.tenant_id, events, self.now_ms, expires_at_s)
        self.model.put(events, self.now_ms, expires_at_s)
        self.sent = ids(events) + self.sent

    @rule()
    def toggle_default(self) -> None:
        self.model.default_enabled = not self.model.default_enabled
        self.process.inboxes.set_default_enabled(self.tenant_id, self.model.default_enabled)

    @rule(duration_ms=DURATIONS_MS | DURATIONS_MS | LONG_DURATIONS_MS)
    def wait(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.model.pass_time(self.now_ms)

    @rule(inbox=INBOXES, size=SIZES, times=st.integers(1, MAX_DELIVERIES))
    def lose_leases(self, inbox: str, size: PageSize, times: int) -> None:
        for _ in range(times):
            self.receipts += self.claim(inbox, size, self.now_ms + 1_000, None)
            self.wait(1_000)

    @rule()
    def restart(self) -> None:
        self.harness.reopen()

    @rule(inbox=INBOXES, size=SIZES, attempt=ATTEMPTS)
    def consume(self, inbox: str, size: PageSize, attempt: str | None) -> None:
        self.claim(inbox, size, None, attempt)

    @rule(inbox=INBOXES, size=SIZES, duration_ms=DURATIONS_MS | LONG_DURATIONS_MS, attempt=ATTEMPTS)
    def lease(self, inbox: str, size: PageSize, duration_ms: int, attempt: str | None) -> None:
        self.receipts = self.claim(inbox, size, self.now_ms + duration_ms, attempt) + self.receipts

    @rule(
        inbox=INBOXES,
        size=SIZES,
        action=ACTIONS,
        pause_ms=NO_DURATION | DURATIONS_MS,
        duration_ms=NO_DURATION | DURATIONS_MS,
    )
    def lease_and_settle(self, inbox: str, size: PageSize, action: str, pause_ms: int, duration_ms: int) -> None:
        self.lease(inbox, size, 10_000, None)
        self.wait(pause_ms)
        if self.receipts:
            self.settle_receipts(action, [0, 1], duration_ms)

    def claim(self, inbox: str, size: PageSize, until_ms: int | None, attempt: str | None) -> list[Receipt]:
        page = self.events.claim(self.tenant_id, inbox, size, self.now_ms, until_ms, attempt)
        expected = self.model.claim(inbox, size, self.now_ms, until_ms, attempt)
        for event, expected_event in zip(page.events, expected.events, strict=False):
            if event.lease is not None and expected_event.lease is not None:
                claim_id = expected_event.lease.claim_id
                self.claims.setdefault((event.event_id, event.lease.claim_id), claim_id)
        assert (self.with_model_claim_ids(page.events), page.more) == (expected.events, expected.more)
        return receipts([event for event in page.events if event.lease])

    @precondition(lambda self: self.receipts)
    @rule(action=ACTIONS, picks=PICKS, duration_ms=NO_DURATION | DURATIONS_MS)
    def settle_receipts(self, action: str, picks: list[int], duration_ms: int) -> None:
        store_receipts = [self.receipts[pick % len(self.receipts)] for pick in picks]
        model_receipts = [replace(one, claim_id=self.claims[one.event_id, one.claim_id]) for one in store_receipts]
        match action:
            case "acknowledge":
                outcomes = self.events.acknowledge(self.tenant_id, store_receipts, self.now_ms)
                assert outcomes == self.model.acknowledge(model_receipts, self.now_ms)
            case "release" | "fail":
                failed = action == "fail"
                outcomes = self.events.release(
                    self.tenant_id, store_receipts, self.now_ms + duration_ms, self.now_ms, failed=failed
                )
                assert outcomes == self.model.release(model_receipts, self.now_ms + duration_ms, failed)
            case "extend":
                outcomes = self.events.extend(
                    self.tenant_id, store_receipts, self.now_ms + 1 + duration_ms, self.now_ms
                )
                assert outcomes == self.model.extend(model_receipts, self.now_ms + 1 + duration_ms)

    @rule(inbox=INBOXES, pick=PICK)
    def replay(self, inbox: str, pick: int) -> None:
        event_id = self.sent[pick % len(self.sent)]
        try:
            expected = self.model.replay(inbox, event_id)
        except EventLeased:
            with pytest.raises(EventLeased):
                self.events.replay(self.tenant_id, inbox, event_id, self.now_ms)
        else:
            assert self.events.replay(self.tenant_id, inbox, event_id, self.now_ms) == expected

    @rule(criteria=SELECTIONS, limit=st.integers(1, 4))
    def replay_all(self, criteria: Criteria, limit: int) -> None:
        selection = self.make_selection(*criteria)
        replayed = self.events.replay_all(self.tenant_id, selection, limit, self.now_ms)
        assert replayed == self.model.replay_all(selection, limit)

    @rule(pick=PICK)
    def erase(self, pick: int) -> None:
        event_id = self.sent[pick % len(self.sent)]
        assert self.events.erase(self.tenant_id, event_id, self.now_ms) == self.model.erase(event_id)

    @rule(criteria=SELECTIONS, order=ORDERS, size=SIZES)
    def list_events(self, criteria: Criteria, order: Order, size: PageSize) -> None:
        selection = self.make_selection(*criteria)
        assert self.history(selection, order, size) == self.model.page(selection, order)

    @rule(inbox=INBOXES, pick=PICK)
    def get(self, inbox: str, pick: int) -> None:
        event_id = self.sent[pick % len(self.sent)]
        found, expected = self.events.get(self.tenant_id, inbox, event_id, self.now_ms), self.model.get(inbox, event_id)
        assert self.with_model_claim_ids([found] if found else []) == ([expected.event] if expected else [])

    @invariant()
    def inspect(self) -> None:
        """Compares the claimable events of one inbox after the other, in both orders, and their number."""
        inbox, order = next(self.inspections)
        if order is None:
            self.count_undelivered(inbox)
        else:
            self.peek(inbox, order)

    def peek(self, inbox: str, order: Order) -> None:
        page = self.events.peek(self.tenant_id, inbox, order, page_of(3), self.now_ms)
        assert page == self.model.peek(inbox, order, page_of(3), self.now_ms)

    def count_undelivered(self, inbox: str) -> None:
        eligible = self.model.eligible(inbox, self.now_ms)
        oldest_ms = eligible[0].event.timestamp_ms if eligible else None
        undelivered = self.process.counters.undelivered(self.tenant_id, inbox, self.now_ms)
        assert undelivered == UndeliveredSummary(len(eligible), oldest_ms)

    def teardown(self) -> None:
        for store in (self.harness.store, self.other_process):
            store.counters.flush()
        for inbox in (DEFAULT_INBOX, NAMED.name):
            for span in Span:
                counted = self.process.counters.list_counts(self.tenant_id, inbox, span, 0)
                # A store may count a dead event late, or never if the event was erased first.
                for name in set(Counts._fields) - {"dead"}:
                    total = sum(getattr(each.counts, name) for each in counted)
                    assert (name, total) == (name, self.model.counts[inbox, name])
            assert self.history(Selection(inbox), Order.OLDEST, page_of(100)) == self.model.page(
                Selection(inbox), Order.OLDEST
            )

    def history(self, selection: Selection, order: Order, size: PageSize) -> list[Event]:
        listing = self.events.page(self.tenant_id, selection, order, size, None, self.now_ms)
        events = listing.events
        while listing.position is not None:
            listing = self.events.page(self.tenant_id, selection, order, size, listing.position, self.now_ms)
            events = events + listing.events
        return self.with_model_claim_ids(events)

    def make_selection(
        self, inbox: str, status: Status | None, event_type: str | None, max_age_ms: int | None, min_age_ms: int | None
    ) -> Selection:
        since_ms, until_ms = max_age_ms and self.now_ms - max_age_ms, min_age_ms and self.now_ms + 1 - min_age_ms
        return Selection(inbox, status, event_type, since_ms, until_ms)

    def with_model_claim_ids(self, events: list[Event]) -> list[Event]:
        return [
            event._replace(lease=Lease(self.claims[event.event_id, event.lease.claim_id], event.lease.expires_at_ms))
            if event.lease
            else event
            for event in events
        ]


@pytest.mark.slow
# After ten examples of a seed, Hypothesis mostly varies them slightly. Another seed finds more.
@pytest.mark.parametrize(
    ("harness", "seeds", "examples_per_seed"), [("sqlite", 10, 10), ("dynamodb-local", 1, 10)], indirect=["harness"]
)
def test_engine_behaves_like_the_model(harness: Harness, seeds: int, examples_per_seed: int, torture: bool) -> None:
    other_process, numbers = harness.another(), count()

    class EngineStateMachine(InboxStateMachine):
        def __init__(self) -> None:
            super().__init__(harness, other_process, next(numbers))

    settings = hypothesis_settings(max_examples=examples_per_seed, stateful_step_count=50, deadline=None, database=None)
    for number in range(5 * seeds if torture else seeds):
        run_state_machine_as_test(seed(number)(EngineStateMachine), settings=settings)
