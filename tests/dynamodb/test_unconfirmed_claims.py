"""Claims whose response is lost: their events are still delivered once."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, PageSize
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.event_updates import EventUpdate
from inbox.store.dynamodb.items import to_known_event
from inbox.store.dynamodb.layout import EVENTS, event_key
from tests.contract.samples import ids
from tests.dynamodb.conftest import (
    BOTOCORE_ATTEMPTS,
    LATER_S,
    NOW,
    PAGE_BYTES,
    both_ways_to_claim,
    claim,
    put_events,
    warm_up,
)
from tests.engines.wire import Fault, Wire

# How often the store tries an update that fails.
TRIES = 3

pytestmark = pytest.mark.usefixtures("no_pauses")


def make_claim_unconfirmed(
    engine: str,
    store: DynamoDBStore,
    wire: Wire,
    tenant: str,
    fault: Fault,
    count: int,
    then: Callable[[dict[str, Any]], object] = lambda _body: None,
) -> None:
    """Makes a claim of `count` events in which every attempt fails."""
    if engine == "dynamodb_local":
        wire.fail("BatchExecuteStatement", fault, TRIES, then=then)
    else:
        wire.fail("UpdateItem", fault, count * TRIES, table=EVENTS, then=then)
    with pytest.raises(StoreUnavailable):
        claim(store, tenant)


@both_ways_to_claim
@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.CUT_AFTER, Fault.SERVER_ERROR_AFTER])
def test_next_poll_returns_events_of_an_unconfirmed_claim(
    engine: str, store: DynamoDBStore, wire: Wire, tenant: str, fault: Fault
) -> None:
    warm_up(store, tenant)
    events = put_events(store, tenant, 3)
    make_claim_unconfirmed(engine, store, wire, tenant, fault, 3)

    assert claim(store, tenant) == events
    assert claim(store, tenant) == []


def test_error_after_the_first_events_does_not_discard_them(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    warm_up(store, tenant)
    events = put_events(store, tenant, 60)
    wire.fail("BatchExecuteStatement", Fault.TIMEOUT_AFTER, BOTOCORE_ATTEMPTS, after=1)

    page = store.events.claim(tenant, DEFAULT_INBOX, PageSize(60, PAGE_BYTES), NOW)
    assert (ids(page.events), page.more) == (events[:25], True)
    assert claim(store, tenant) == events[25:]


def test_slow_claim_returns_the_events_claimed_so_far(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = put_events(store, tenant, 60)
    monkeypatch.setattr("inbox.store.dynamodb.connection.MAX_SECONDS", 0)

    pages = [store.events.claim(tenant, DEFAULT_INBOX, PageSize(60, PAGE_BYTES), NOW) for _ in range(4)]
    assert [(len(page.events), page.more) for page in pages] == [(25, True), (25, True), (10, True), (0, False)]
    assert [event_id for page in pages for event_id in ids(page.events)] == events


@pytest.fixture
def unconfirmed_event_ids(engine: str, store: DynamoDBStore, wire: Wire, tenant: str) -> list[str]:
    """IDs of events that claims have marked delivered without receiving a response."""
    warm_up(store, tenant)
    events = put_events(store, tenant, 3)
    # One fault before the commit and one after it, so that two claims of each event are unconfirmed.
    for fault in (Fault.TIMEOUT_BEFORE, Fault.TIMEOUT_AFTER):
        make_claim_unconfirmed(engine, store, wire, tenant, fault, 3)
    return events


def test_two_unconfirmed_claims_of_an_event_deliver_it_once(
    store: DynamoDBStore, tenant: str, unconfirmed_event_ids: list[str]
) -> None:
    assert claim(store, tenant) == unconfirmed_event_ids
    assert claim(store, tenant) == []


@pytest.mark.parametrize(("operation", "calls"), [("GetItem", 1), ("BatchGetItem", 1), ("Query", 1)])
def test_unconfirmed_claim_survives_further_faults(
    store: DynamoDBStore, wire: Wire, tenant: str, unconfirmed_event_ids: list[str], operation: str, calls: int
) -> None:
    store.events._shards._cache.clear()
    wire.fail(operation, Fault.TIMEOUT_BEFORE, calls * BOTOCORE_ATTEMPTS)
    delivered: list[str] = []
    for _ in range(6):
        with suppress(StoreUnavailable):
            delivered += claim(store, tenant)

    assert wire.fault_count
    assert delivered == unconfirmed_event_ids


def test_recovered_events_do_not_exceed_the_page_size(
    store: DynamoDBStore, tenant: str, unconfirmed_event_ids: list[str]
) -> None:
    pages = [store.events.claim(tenant, DEFAULT_INBOX, PageSize(9, 1), NOW).events for _ in range(4)]
    assert [ids(page) for page in pages] == [*([each] for each in unconfirmed_event_ids), []]


@pytest.mark.usefixtures("unconfirmed_event_ids")
def test_expired_events_of_an_unconfirmed_claim_are_not_recovered(store: DynamoDBStore, tenant: str) -> None:
    assert claim(store, tenant, now_ms=LATER_S * 1000) == []


@both_ways_to_claim
def test_event_whose_claim_arrives_late_is_recovered(
    engine: str, store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    warm_up(store, tenant)
    events = put_events(store, tenant, 1)
    late: list[dict[str, Any]] = []
    make_claim_unconfirmed(engine, store, wire, tenant, Fault.TIMEOUT_BEFORE, 1, then=late.append)
    # This poll looks for the event, and fails before it can claim anything itself.
    wire.fail("Query", Fault.TIMEOUT_BEFORE, BOTOCORE_ATTEMPTS)
    with pytest.raises(StoreUnavailable):
        claim(store, tenant)
    operation = "batch_execute_statement" if engine == "dynamodb_local" else "update_item"
    getattr(other_store._connection.client, operation)(**late[0])

    assert claim(store, tenant) == events


@both_ways_to_claim
def test_claim_that_arrives_late_does_not_deliver_a_replayed_event(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str
) -> None:
    (event_id,) = put_events(store, tenant, 1)
    item = store._connection.get("Events", event_key(tenant, event_id))
    assert item is not None
    event = to_known_event(item)
    assert claim(other_store, tenant) == [event_id]
    # The event has the same status key as before, but one delivery more.
    other_store.events.replay(tenant, DEFAULT_INBOX, event_id, NOW)

    (result,) = store.events._updates.apply([EventUpdate(event, event.consumed("late", NOW))], NOW)
    assert (result.item, result.error) == (None, None)
    assert claim(other_store, tenant) == [event_id]


def test_statement_that_returns_no_item_is_repeated(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm_up(store, tenant)
    events = put_events(store, tenant, 1)
    execute = store._connection.client.batch_execute_statement

    def without_items(**parameters: Any) -> Any:
        monkeypatch.undo()
        monkeypatch.setattr("time.sleep", lambda _seconds: None)
        return {"Responses": [{"TableName": part["TableName"]} for part in execute(**parameters)["Responses"]]}

    monkeypatch.setattr(store._connection.client, "batch_execute_statement", without_items)
    assert claim(store, tenant) == events


def test_throttled_probe_is_repeated(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    put_events(store, tenant, 2)
    wire.fail("BatchExecuteStatement", Fault.ALL_UNPROCESSED, 1)
    assert len(claim(store, tenant, 1)) == len(claim(store, tenant, 1)) == 1
    # One update takes the claim token, the other one claims the first event.
    assert (wire.calls["UpdateItem"], wire.calls["BatchExecuteStatement"]) == (2, 3)
