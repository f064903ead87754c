"""Counts that are added up in memory: when they are written, what becomes of them where that fails, what it costs."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from structlog.testing import capture_logs

from inbox.domain.events import DEFAULT_INBOX, PageSize, Receipt, Status
from inbox.domain.inboxes import Inbox
from inbox.domain.stats import Counts, Span
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore, pending_counts
from inbox.store.dynamodb.connection import MAX_PARALLEL_CALLS
from inbox.store.dynamodb.layout import TENANTS, counter_key
from tests.dynamodb.conftest import ALL_ATTEMPTS, ANY_SIZE, LATER, NOW, claim, keyed
from tests.dynamodb.counted import TODAY, send, totals
from tests.engines.harnesses import MAX_DELIVERIES
from tests.engines.wire import Fault, Wire


class Seconds:
    """The clock that says when counts are due."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    seconds = Seconds()
    monkeypatch.setattr(pending_counts, "time", SimpleNamespace(monotonic=seconds))
    return seconds


def held(store: DynamoDBStore) -> int:
    pending = store.counters._counter._pending
    assert pending._size == sum(len(each.sums) for each in pending._inboxes.values())
    return pending._size


@pytest.mark.parametrize(
    ("moves", "age", "is_written"), [(99, 5, False), (100, 4.9, False), (100, 5, True), (1, 59, False), (1, 60, True)]
)
def test_counts_are_written_once_they_are_worth_it_or_old(
    store: DynamoDBStore,
    other_store: DynamoDBStore,
    tenant: str,
    seconds: Seconds,
    moves: int,
    age: float,
    is_written: bool,
) -> None:
    send(store, tenant, moves)
    seconds.now += age
    store.counters.flush(at_once=False)
    assert totals(other_store, tenant).received == (moves if is_written else 0)
    store.counters.flush()
    assert totals(other_store, tenant).received == moves


def test_counting_costs_less_than_two_hundredths_of_the_write_units(
    store: DynamoDBStore, wire: Wire, tenant: str, seconds: Seconds
) -> None:
    """Of an inbox through which ten events a second go, sent and polled ten at a time."""
    # DynamoDB Local does not say what a statement costs.
    store.events._updates._statements_are_conditional = False
    counters, events = [], []
    wire.reset()
    for _ in range(10):
        for _ in range(10):
            send(store, tenant, 10)
            claim(store, tenant)
            seconds.now += 1
        events.append(wire.write_units)
        wire.reset()
        store.counters.flush(at_once=False)
        counters.append(wire.write_units)
        wire.reset()
    store.counters.flush()
    counters.append(wire.write_units)

    assert totals(store, tenant)[:2] == (1000, 1000)
    assert 0 < sum(counters) < 0.02 * sum(events), (sum(counters), sum(events))


def test_the_price_of_what_is_worth_nothing_yet_is_not_asked_for(
    store: DynamoDBStore, tenant: str, seconds: Seconds
) -> None:
    """Whoever counts an event waits while it is worked out."""
    units = Mock(return_value=1)
    for moves, is_asked in ((49, False), (1, True)):
        send(store, tenant, moves)
        seconds.now += 5
        assert (bool(store.counters._counter._pending.pop_due(units)), units.called) == (is_asked, is_asked)


def test_a_copy_is_counted_once_however_many_have_written_it(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    """Whoever repeats an event with a key finishes what is left to do of the first try."""
    store.inboxes.save(tenant, Inbox("shipping", None, NOW))
    event = keyed()
    wire.fail("UpdateItem", Fault.TIMEOUT_BEFORE, ALL_ATTEMPTS)
    with pytest.raises(StoreUnavailable):
        store.events.put(tenant, [event], NOW, LATER)
    wire.reset()
    for each in (store, other_store):
        each.events.put(tenant, [event], NOW, LATER)
        each.counters.flush()
    for inbox in (DEFAULT_INBOX, "shipping"):
        (counted,) = store.counters.list_counts(tenant, inbox, Span.DAY, 0)
        assert counted.counts == Counts(received=1, bytes=len(event.payload))
    assert store.counters.recount(tenant, 0, NOW) == 0


def test_an_event_that_many_erase_at_once_is_gone_once(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, erased = send(store, tenant, 2)
    together = threading.Barrier(4)
    walk = store._connection.query_items

    def all_have_seen_it(**query: Any) -> list[dict[str, Any]]:
        found = list(walk(**query))
        together.wait(10)
        return found

    with monkeypatch.context() as patch, ThreadPoolExecutor(4) as threads:
        patch.setattr(store._connection, "query_items", all_have_seen_it)
        erasing = [threads.submit(store.events.erase, tenant, erased.event_id, NOW) for _ in range(4)]
        assert all(each.result() for each in erasing)
    store.counters.flush()
    today = store._connection.get(TENANTS, counter_key(tenant, DEFAULT_INBOX, Span.DAY, TODAY))
    assert today is not None
    assert today["undelivered"] == {"N": "1"}


def test_what_was_refused_is_written_the_next_time(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    send(store, tenant, 3)
    wire.fail("UpdateItem", Fault.THROTTLED, 1)
    with capture_logs() as log:
        store.counters.flush()
    assert [(line["event"], line["will_retry"]) for line in log] == [("counts not written", True)]
    assert totals(other_store, tenant).received in (0, 3)

    send(store, tenant, 2)
    store.counters.flush()
    for span in Span:
        assert totals(other_store, tenant, span).received == 5


@pytest.mark.parametrize(
    ("fault", "received"),
    [(Fault.TIMEOUT_AFTER, 3), (Fault.SERVER_ERROR_AFTER, 3), (Fault.TIMEOUT_BEFORE, 0)],
)
def test_an_addition_whose_answer_is_lost_is_not_made_twice(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, fault: Fault, received: int
) -> None:
    send(store, tenant, 3)
    wire.fail("UpdateItem", fault, 2)
    with capture_logs() as log:
        store.counters.flush()
        store.counters.flush()
    assert [(line["event"], line["will_retry"]) for line in log] == [("counts not written", False)] * 2
    for span in Span:
        assert totals(other_store, tenant, span).received == received


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("times", [1, ALL_ATTEMPTS])
def test_a_claim_whose_answer_is_lost_is_counted_when_it_is_found(
    store: DynamoDBStore, wire: Wire, tenant: str, times: int
) -> None:
    events = send(store, tenant, 3)
    claim(store, tenant, 1)
    wire.fail("BatchExecuteStatement", Fault.CUT_AFTER, times)
    taken: list[str] = []
    for _ in range(2):
        with suppress(StoreUnavailable):
            taken += claim(store, tenant)
    assert sorted(taken) == sorted(event.event_id for event in events[1:])
    assert wire.fired == times

    store.counters.flush()
    assert totals(store, tenant).delivered == 3
    assert store.counters.recount(tenant, 0, NOW) == 0


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.CUT_AFTER, Fault.SERVER_ERROR_AFTER])
def test_death_whose_answer_is_lost_is_counted_once(
    store: DynamoDBStore, wire: Wire, tenant: str, fault: Fault
) -> None:
    send(store, tenant)
    for lost_leases in range(1, MAX_DELIVERIES + 1):
        (event,) = store.events.claim(tenant, DEFAULT_INBOX, PageSize(1, ANY_SIZE), NOW, NOW + 60_000).events
        assert event.lease is not None
        receipt = Receipt(DEFAULT_INBOX, event.event_id, event.lease.claim_id)
        wire.fail("BatchExecuteStatement", fault, 1)
        for _ in range(2):
            assert store.events.release(tenant, [receipt], NOW, NOW, failed=True) == [True]
        assert wire.fired == lost_leases

    found = store.events.get(tenant, DEFAULT_INBOX, receipt.event_id, NOW)
    assert found is not None
    assert found.status is Status.DEAD
    store.counters.flush()
    assert totals(store, tenant)[:4] == (1, 0, MAX_DELIVERIES, 1)
    assert store.counters.undelivered(tenant, DEFAULT_INBOX, NOW).count == 0


def test_what_cannot_be_written_does_not_grow_without_end(
    store: DynamoDBStore, wire: Wire, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_counts, "_MAX_PENDING", 8)
    send(store, tenant)
    for number in range(20):
        send(store, f"{tenant}-{number}")
    assert held(store) == 8
    wire.fail("UpdateItem", Fault.THROTTLED, 1_000)
    for _ in range(2):
        store.counters.flush()
        assert held(store) == 8
    wire.reset()
    store.counters.flush()
    assert held(store) == 0
    assert totals(store, tenant).received == 1


def test_a_tenant_whose_counts_cannot_be_written_is_nobody_elses_trouble(
    store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    """An item that is full, for one: what is to be added to it is given up."""
    store._connection.call(
        "put_item",
        TableName=store._connection.table(TENANTS),
        Item={**counter_key(tenant, DEFAULT_INBOX, Span.DAY, TODAY), "filling": {"B": bytes(409_540)}},
    )
    neighbours = [f"{tenant}-{number}" for number in range(40)]
    for each in (tenant, *neighbours):
        send(store, each)
    with capture_logs() as log:
        store.counters.flush()
    assert [(line["error"], line["will_retry"]) for line in log] == [("ValidationException", False)]
    assert held(store) == 0
    assert all(totals(store, each).received == 1 for each in neighbours)

    # Throttled, they go on waiting, and nobody with them.
    for each in (tenant, *neighbours):
        send(store, each)
    wire.fail("UpdateItem", Fault.THROTTLED, 1)
    store.counters.flush()
    assert 0 < held(store) <= 3
    assert sum(totals(store, each).received for each in neighbours) >= 2 * len(neighbours) - 1


@pytest.mark.parametrize("fault", [Fault.TIMEOUT_BEFORE, Fault.SERVER_ERROR])
def test_where_nothing_answers_one_group_is_tried_and_the_others_wait(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, seconds: Seconds, fault: Fault
) -> None:
    tenants = [f"{tenant}-{number}" for number in range(40)]
    for each in tenants:
        send(store, each)
    wire.fail("UpdateItem", fault, 1_000)
    store.counters.flush()
    assert 0 < wire.fired <= MAX_PARALLEL_CALLS

    # For a while nothing is tried in the background.
    tried = wire.calls.total()
    seconds.now += 29
    store.counters.flush(at_once=False)
    assert wire.calls.total() == tried
    wire.reset()
    store.counters.flush()
    assert sum(totals(other_store, each).received for each in tenants) >= len(tenants) - MAX_PARALLEL_CALLS


def test_a_flush_ends_in_time_however_much_waits(
    store: DynamoDBStore, wire: Wire, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        send(store, f"{tenant}-{number}")
    before = held(store)
    moments = count()
    monkeypatch.setattr(pending_counts, "time", SimpleNamespace(monotonic=lambda: next(moments) * 2.0))
    wire.reset()
    store.counters.flush()
    # One group: two seconds later the time is up.
    assert wire.calls["UpdateItem"] == MAX_PARALLEL_CALLS
    assert 0 < held(store) < before


def test_a_store_that_is_closed_has_written_what_it_counted(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str
) -> None:
    send(other_store, tenant, 2)
    other_store.close()
    assert totals(store, tenant).received == 2
