"""Claims whose answer was lost: the events come out all the same, once."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, PageSize
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.event_states import EventUpdate
from inbox.store.dynamodb.items import to_known_event
from inbox.store.dynamodb.layout import event_key
from tests.dynamodb.conftest import (
    ALL_ATTEMPTS,
    ANY_SIZE,
    LATER,
    NOW,
    both_ways_to_claim,
    claim,
    fresh,
    have_polled_before,
)
from tests.engines.wire import Fault, Wire

pytestmark = pytest.mark.usefixtures("no_pauses")

# A poll looks for what is undelivered, and for what has come back, at the same time.
QUERIES = 2


def lose_a_claim(
    engine: str,
    store: DynamoDBStore,
    wire: Wire,
    tenant: str,
    fault: Fault,
    events: int,
    then: Callable[[dict[str, Any]], object] = lambda _body: None,
) -> None:
    """A claim of so many events in which every attempt fails."""
    # Where statements do not keep conditions, there are three rounds of an update for each event.
    operation, calls = ("BatchExecuteStatement", 1) if engine == "dynamodb_local" else ("UpdateItem", 3 * events)
    wire.fail(operation, fault, calls * ALL_ATTEMPTS, then=then)
    with pytest.raises(StoreUnavailable):
        claim(store, tenant)


@both_ways_to_claim
@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.CUT_AFTER, Fault.SERVER_ERROR_AFTER])
def test_a_claim_whose_answer_was_lost_comes_out_at_the_next_poll(
    engine: str, store: DynamoDBStore, wire: Wire, tenant: str, fault: Fault
) -> None:
    have_polled_before(store, tenant)
    events = [fresh() for _ in range(3)]
    store.events.put(tenant, events, NOW, LATER)
    lose_a_claim(engine, store, wire, tenant, fault, 3)

    assert claim(store, tenant) == [event.event_id for event in events]
    assert claim(store, tenant) == []


def test_an_error_after_the_first_events_does_not_take_them_back(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    have_polled_before(store, tenant)
    events = [fresh() for _ in range(60)]
    store.events.put(tenant, events, NOW, LATER)
    wire.fail("BatchExecuteStatement", Fault.TIMEOUT_AFTER, ALL_ATTEMPTS, after=1)

    page = store.events.claim(tenant, DEFAULT_INBOX, PageSize(60, ANY_SIZE), NOW)
    ids = [event.event_id for event in events]
    assert ([event.event_id for event in page.events], page.more) == (ids[:25], True)
    assert claim(store, tenant) == ids[25:]


def test_a_claim_that_takes_long_hands_out_what_it_has(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [fresh() for _ in range(60)]
    store.events.put(tenant, events, NOW, LATER)
    monkeypatch.setattr("inbox.store.dynamodb.claims.MAX_SECONDS", 0)

    pages = [store.events.claim(tenant, DEFAULT_INBOX, PageSize(60, ANY_SIZE), NOW) for _ in range(4)]
    assert [(len(page.events), page.more) for page in pages] == [(25, True), (25, True), (10, True), (0, False)]
    assert [event.event_id for page in pages for event in page.events] == [event.event_id for event in events]


@pytest.fixture
def lost_claim(engine: str, store: DynamoDBStore, wire: Wire, tenant: str) -> list[str]:
    """Events that a claim has marked delivered without hearing so."""
    have_polled_before(store, tenant)
    events = [fresh() for _ in range(3)]
    store.events.put(tenant, events, NOW, LATER)
    # Once before the commit and once after it, so that two claims of each event are in doubt.
    for fault in (Fault.TIMEOUT_BEFORE, Fault.TIMEOUT_AFTER):
        lose_a_claim(engine, store, wire, tenant, fault, 3)
    return [event.event_id for event in events]


def test_two_lost_answers_about_the_same_events_are_no_trouble(
    store: DynamoDBStore, tenant: str, lost_claim: list[str]
) -> None:
    assert claim(store, tenant) == lost_claim
    assert claim(store, tenant) == []


@pytest.mark.parametrize(("operation", "calls"), [("GetItem", 1), ("BatchGetItem", 1), ("Query", QUERIES)])
def test_a_lost_claim_survives_further_faults(
    store: DynamoDBStore, wire: Wire, tenant: str, lost_claim: list[str], operation: str, calls: int
) -> None:
    store.events._shards._cache.clear()
    wire.fail(operation, Fault.TIMEOUT_BEFORE, calls * ALL_ATTEMPTS)
    came_out: list[str] = []
    for _ in range(6):
        with suppress(StoreUnavailable):
            came_out += claim(store, tenant)

    assert wire.fired
    assert came_out == lost_claim


def test_what_is_recovered_keeps_to_the_size_of_a_page(
    store: DynamoDBStore, tenant: str, lost_claim: list[str]
) -> None:
    pages = [store.events.claim(tenant, DEFAULT_INBOX, PageSize(9, 1), NOW).events for _ in range(4)]
    assert [[event.event_id for event in page] for page in pages] == [*([each] for each in lost_claim), []]


def test_what_is_recovered_may_have_expired(store: DynamoDBStore, tenant: str, lost_claim: list[str]) -> None:
    assert lost_claim
    assert claim(store, tenant, now_ms=LATER * 1000) == []


def test_a_write_that_is_still_on_its_way_is_waited_for(
    engine: str, store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    have_polled_before(store, tenant)
    event = fresh()
    store.events.put(tenant, [event], NOW, LATER)
    late: list[dict[str, Any]] = []
    lose_a_claim(engine, store, wire, tenant, Fault.TIMEOUT_BEFORE, 1, then=late.append)
    # A poll that looks, and fails before it can claim anything itself.
    wire.fail("Query", Fault.TIMEOUT_BEFORE, QUERIES * ALL_ATTEMPTS)
    with pytest.raises(StoreUnavailable):
        claim(store, tenant)
    # One of its queries may still be at it.
    wire.reset()
    call = "batch_execute_statement" if engine == "dynamodb_local" else "update_item"
    getattr(other_store._connection.client, call)(**late[0])

    assert claim(store, tenant) == [event.event_id]


def test_a_claim_that_arrives_late_takes_nothing_that_was_replayed_meanwhile(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str
) -> None:
    """The event stands in the index as it did when the claim was made, but for its number of deliveries."""
    event = fresh()
    store.events.put(tenant, [event], NOW, LATER)
    item = store._connection.get("Events", event_key(tenant, event.event_id))
    assert item is not None
    seen = to_known_event(item)
    assert claim(other_store, tenant) == [event.event_id]
    other_store.events.replay(tenant, DEFAULT_INBOX, event.event_id, NOW)

    (outcome,) = store.events._updates.apply([EventUpdate(seen, seen.consumed("late", NOW))], NOW)
    assert (outcome.item, outcome.error) == (None, None)
    assert claim(other_store, tenant) == [event.event_id]


def test_a_statement_that_says_nothing_of_its_item_is_asked_again(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_polled_before(store, tenant)
    event = fresh()
    store.events.put(tenant, [event], NOW, LATER)
    answer = store._connection.client.batch_execute_statement

    def silent(**parameters: Any) -> Any:
        monkeypatch.undo()
        monkeypatch.setattr("time.sleep", lambda _seconds: None)
        return {"Responses": [{"TableName": response["TableName"]} for response in answer(**parameters)["Responses"]]}

    monkeypatch.setattr(store._connection.client, "batch_execute_statement", silent)
    assert claim(store, tenant) == [event.event_id]


def test_a_throttled_probe_is_repeated(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    for _ in range(2):
        store.events.put(tenant, [fresh()], NOW, LATER)
    wire.fail("BatchExecuteStatement", Fault.NONE, 1)
    assert len(claim(store, tenant, 1)) == len(claim(store, tenant, 1)) == 1
    assert (wire.calls["UpdateItem"], wire.calls["BatchExecuteStatement"]) == (1, 3)
