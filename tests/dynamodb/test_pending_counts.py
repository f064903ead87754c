"""Counts in memory: the time of writing, failed writes, and the cost of counting."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from structlog.testing import capture_logs

from inbox.domain.events import DEFAULT_INBOX, Status
from inbox.domain.inboxes import Inbox
from inbox.domain.stats import Counts, Span
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore, pending_counts
from inbox.store.dynamodb.connection import MAX_PARALLEL_CALLS
from inbox.store.dynamodb.layout import TENANTS, counter_key
from tests.contract.samples import receipt as receipt_of
from tests.dynamodb.conftest import (
    BOTOCORE_ATTEMPTS,
    LATER_S,
    LEASE_UNTIL,
    NOW,
    TODAY,
    claim,
    keyed_event,
    poll,
    put_events,
    total_counts,
)
from tests.engines.harnesses import MAX_DELIVERIES
from tests.engines.wire import Fault, Wire


class FakeClock:
    """The monotonic clock of the counter."""

    def __init__(self) -> None:
        self.now_seconds = 1_000.0

    def __call__(self) -> float:
        return self.now_seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    monkeypatch.setattr(pending_counts, "time", SimpleNamespace(monotonic=clock))
    return clock


def count_pending_sums(store: DynamoDBStore) -> int:
    pending = store.counters._counter._pending
    assert pending._size == sum(each.size for each in pending._inboxes.values())
    return pending._size


@pytest.mark.parametrize(
    ("events_sent", "age_seconds", "is_written"),
    [(99, 5, False), (100, 4.9, False), (100, 5, True), (1, 59, False), (1, 60, True)],
)
def test_counts_are_written_when_they_are_cheap_or_old(
    store: DynamoDBStore,
    other_store: DynamoDBStore,
    tenant: str,
    clock: FakeClock,
    events_sent: int,
    age_seconds: float,
    is_written: bool,
) -> None:
    put_events(store, tenant, events_sent)
    clock.now_seconds += age_seconds
    store.counters.flush(at_once=False)
    assert total_counts(other_store, tenant).received == (events_sent if is_written else 0)
    store.counters.flush()
    assert total_counts(other_store, tenant).received == events_sent


def test_counting_costs_less_than_2_percent_of_the_write_units(
    store: DynamoDBStore, wire: Wire, tenant: str, clock: FakeClock
) -> None:
    """The inbox receives ten events per second. They are sent and polled ten at a time."""
    # DynamoDB Local does not report the units of a statement.
    store.events._updates._statements_are_conditional = False
    counter_units, event_units = [], []
    wire.reset()
    for _ in range(10):
        for _ in range(10):
            put_events(store, tenant, 10)
            claim(store, tenant)
            clock.now_seconds += 1
        event_units.append(wire.write_units)
        wire.reset()
        store.counters.flush(at_once=False)
        counter_units.append(wire.write_units)
        wire.reset()
    store.counters.flush()
    counter_units.append(wire.write_units)

    assert total_counts(store, tenant)[:2] == (1000, 1000)
    assert 0 < sum(counter_units) < 0.02 * sum(event_units), (sum(counter_units), sum(event_units))


def test_price_of_few_counts_is_not_computed(store: DynamoDBStore, tenant: str, clock: FakeClock) -> None:
    """Threads that count an event wait while the price is computed."""
    price = Mock(return_value=1)
    for events, is_computed in ((49, False), (1, True)):
        put_events(store, tenant, events)
        clock.now_seconds += 5
        assert (bool(store.counters._counter._pending.pop_due(price)), price.called) == (is_computed, is_computed)


def test_copy_that_several_processes_write_is_counted_once(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    """Sending an event with an idempotency key again writes the copies that the first request left missing."""
    store.inboxes.save(tenant, Inbox("shipping", None, NOW))
    event = keyed_event()
    wire.fail("UpdateItem", Fault.TIMEOUT_BEFORE, BOTOCORE_ATTEMPTS)
    with pytest.raises(StoreUnavailable):
        store.events.put(tenant, [event], NOW, LATER_S)
    wire.reset()
    for each in (store, other_store):
        each.events.put(tenant, [event], NOW, LATER_S)
        each.counters.flush()
    for inbox in (DEFAULT_INBOX, "shipping"):
        (counted,) = store.counters.list_counts(tenant, inbox, Span.DAY, 0)
        assert counted.counts == Counts(received=1, bytes=len(event.payload))
    assert store.counters.recount(tenant, 0, NOW) == 0


def test_event_erased_by_concurrent_requests_is_counted_once(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, erased = put_events(store, tenant, 2)
    together = threading.Barrier(4)
    query_items = store._connection.query_items

    def wait_for_others(table: str, **query: Any) -> list[dict[str, Any]]:
        found = list(query_items(table, **query))
        together.wait(10)
        return found

    with monkeypatch.context() as patch, ThreadPoolExecutor(4) as threads:
        patch.setattr(store._connection, "query_items", wait_for_others)
        erasing = [threads.submit(store.events.erase, tenant, erased, NOW) for _ in range(4)]
        assert all(each.result() for each in erasing)
    store.counters.flush()
    today = store._connection.get(TENANTS, counter_key(tenant, DEFAULT_INBOX, Span.DAY, TODAY))
    assert today is not None
    assert today["undelivered"] == {"N": "1"}


def test_throttled_counts_are_written_by_the_next_flush(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    put_events(store, tenant, 3)
    wire.fail("UpdateItem", Fault.THROTTLED, 1)
    with capture_logs() as log:
        store.counters.flush()
    assert [(line["event"], line["will_retry"]) for line in log] == [("counts not written", True)]
    assert total_counts(other_store, tenant).received in (0, 3)

    put_events(store, tenant, 2)
    store.counters.flush()
    for span in Span:
        assert total_counts(other_store, tenant, span).received == 5


@pytest.mark.parametrize(
    ("fault", "received"),
    [(Fault.TIMEOUT_AFTER, 3), (Fault.SERVER_ERROR_AFTER, 3), (Fault.TIMEOUT_BEFORE, 0)],
)
def test_addition_whose_response_is_lost_is_not_repeated(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, fault: Fault, received: int
) -> None:
    put_events(store, tenant, 3)
    wire.fail("UpdateItem", fault, 2)
    with capture_logs() as log:
        store.counters.flush()
        store.counters.flush()
    assert [(line["event"], line["will_retry"]) for line in log] == [("counts not written", False)] * 2
    for span in Span:
        assert total_counts(other_store, tenant, span).received == received


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("times", [1, BOTOCORE_ATTEMPTS])
def test_claim_whose_response_is_lost_is_counted_when_it_is_recovered(
    store: DynamoDBStore, wire: Wire, tenant: str, times: int
) -> None:
    events = put_events(store, tenant, 3)
    claim(store, tenant, 1)
    wire.fail("BatchExecuteStatement", Fault.CUT_AFTER, times)
    claimed: list[str] = []
    for _ in range(2):
        with suppress(StoreUnavailable):
            claimed += claim(store, tenant)
    assert sorted(claimed) == sorted(events[1:])
    assert wire.fault_count == times

    store.counters.flush()
    assert total_counts(store, tenant).delivered == 3
    assert store.counters.recount(tenant, 0, NOW) == 0


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.CUT_AFTER, Fault.SERVER_ERROR_AFTER])
def test_dead_event_whose_response_is_lost_is_counted_once(
    store: DynamoDBStore, wire: Wire, tenant: str, fault: Fault
) -> None:
    put_events(store, tenant, 1)
    for lost_leases in range(1, MAX_DELIVERIES + 1):
        (event,) = poll(store, tenant, 1, lease_until_ms=LEASE_UNTIL)
        receipt = receipt_of(event)
        wire.fail("BatchExecuteStatement", fault, 1)
        for _ in range(2):
            assert store.events.release(tenant, [receipt], NOW, NOW, failed=True) == [True]
        assert wire.fault_count == lost_leases

    found = store.events.get(tenant, DEFAULT_INBOX, receipt.event_id, NOW)
    assert found is not None
    assert found.status is Status.DEAD
    store.counters.flush()
    assert total_counts(store, tenant)[:4] == (1, 0, MAX_DELIVERIES, 1)
    assert store.counters.undelivered(tenant, DEFAULT_INBOX, NOW).count == 0


def test_pending_counts_are_bounded(
    store: DynamoDBStore, wire: Wire, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_counts, "_MAX_PENDING", 8)
    put_events(store, tenant, 1)
    for number in range(20):
        put_events(store, f"{tenant}-{number}", 1)
    assert count_pending_sums(store) == 8
    wire.fail("UpdateItem", Fault.THROTTLED, 1_000)
    for _ in range(2):
        store.counters.flush()
        assert count_pending_sums(store) == 8
    wire.reset()
    store.counters.flush()
    assert count_pending_sums(store) == 0
    assert total_counts(store, tenant).received == 1


def test_counts_that_cannot_be_written_delay_no_other_tenant(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    """Counts for an item that cannot be written, such as a full one, are dropped."""
    store._connection.call(
        "put_item",
        TableName=store._connection.table(TENANTS),
        Item={**counter_key(tenant, DEFAULT_INBOX, Span.DAY, TODAY), "filling": {"B": bytes(409_540)}},
    )
    other_tenants = [f"{tenant}-{number}" for number in range(40)]
    for each in (tenant, *other_tenants):
        put_events(store, each, 1)
    with capture_logs() as log:
        store.counters.flush()
    assert [(line["error"], line["will_retry"]) for line in log] == [("ValidationException", False)]
    assert count_pending_sums(store) == 0
    assert all(total_counts(store, each).received == 1 for each in other_tenants)

    # Throttled counts stay pending and do not delay others.
    for each in (tenant, *other_tenants):
        put_events(store, each, 1)
    wire.fail("UpdateItem", Fault.THROTTLED, 1)
    store.counters.flush()
    assert 0 < count_pending_sums(store) <= 3
    assert sum(total_counts(store, each).received for each in other_tenants) >= 2 * len(other_tenants) - 1


@pytest.mark.parametrize("fault", [Fault.TIMEOUT_BEFORE, Fault.SERVER_ERROR])
def test_flush_stops_after_one_group_if_dynamodb_is_unavailable(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, clock: FakeClock, fault: Fault
) -> None:
    tenants = [f"{tenant}-{number}" for number in range(40)]
    for each in tenants:
        put_events(store, each, 1)
    wire.fail("UpdateItem", fault, 1_000)
    store.counters.flush()
    assert 0 < wire.fault_count <= MAX_PARALLEL_CALLS

    # For 30 seconds no further write is tried in the background.
    tried = wire.calls.total()
    clock.now_seconds += 29
    store.counters.flush(at_once=False)
    assert wire.calls.total() == tried
    wire.reset()
    store.counters.flush()
    assert sum(total_counts(other_store, each).received for each in tenants) >= len(tenants) - MAX_PARALLEL_CALLS


def test_flush_ends_at_its_time_limit(
    store: DynamoDBStore, wire: Wire, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        put_events(store, f"{tenant}-{number}", 1)
    before = count_pending_sums(store)
    readings = count()
    monkeypatch.setattr(pending_counts, "time", SimpleNamespace(monotonic=lambda: next(readings) * 2.0))
    wire.reset()
    store.counters.flush()
    # Only one group fits, because each reading of the clock is two seconds later.
    assert wire.calls["UpdateItem"] == MAX_PARALLEL_CALLS
    assert 0 < count_pending_sums(store) < before


def test_closing_the_store_writes_its_counts(store: DynamoDBStore, other_store: DynamoDBStore, tenant: str) -> None:
    put_events(other_store, tenant, 2)
    other_store.close()
    assert total_counts(store, tenant).received == 2
