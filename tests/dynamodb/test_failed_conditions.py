"""A write is executed, its response is lost, and the condition of botocore's retry fails.

The store must recognize its own write even if the response to the retry does not contain the item.
"""

from collections.abc import Callable
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, Receipt, Status
from inbox.errors import IdempotencyConflict, StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.event_updates import EventUpdate, UpdateResult
from inbox.store.dynamodb.items import to_known_event
from inbox.store.dynamodb.layout import EVENTS, event_key
from tests.contract.samples import receipts as receipts_of
from tests.dynamodb.conftest import (
    BOTOCORE_ATTEMPTS,
    LATER_S,
    LEASE_UNTIL,
    NOW,
    both_ways_to_claim,
    claim,
    keyed_event,
    poll,
    put_events,
    warm_up,
)
from tests.engines.wire import Fault, Wire

pytestmark = pytest.mark.usefixtures("no_pauses")

each_mode = pytest.mark.parametrize("lease_until_ms", [None, LEASE_UNTIL], ids=["consume", "lease"])
each_attempt = pytest.mark.parametrize("attempt", [None, "attempt-1"], ids=["plain", "repeatable"])


@pytest.fixture
def events(store: DynamoDBStore, wire: Wire, tenant: str) -> list[str]:
    warm_up(store, tenant)
    wire.hides_old_items = True
    return put_events(store, tenant, 3)


@pytest.fixture
def lose_response(engine: str, wire: Wire) -> Callable[[], None]:
    """A function that cuts the response to the next update of an event after the commit."""
    operation = "BatchExecuteStatement" if engine == "dynamodb_local" else "UpdateItem"
    table = EVENTS if engine == "moto" else ""
    return lambda: wire.fail(operation, Fault.CUT_AFTER, 1, table=table)


@both_ways_to_claim
@each_mode
@each_attempt
def test_claim_returns_its_events_although_the_response_is_lost(
    store: DynamoDBStore,
    wire: Wire,
    tenant: str,
    events: list[str],
    lose_response: Callable[[], None],
    lease_until_ms: int | None,
    attempt: str | None,
) -> None:
    lose_response()
    assert claim(store, tenant, lease_until_ms=lease_until_ms, attempt=attempt) == events
    assert wire.fault_count == 1
    assert claim(store, tenant) == []


def test_one_read_is_enough_for_all_events_of_a_claim(
    store: DynamoDBStore, wire: Wire, tenant: str, events: list[str], lose_response: Callable[[], None]
) -> None:
    events += put_events(store, tenant, 20)
    wire.calls.clear()
    lose_response()
    assert claim(store, tenant) == events
    assert wire.calls["BatchGetItem"] == 1


@each_attempt
def test_consumed_events_are_not_lost_if_the_read_fails_as_well(
    store: DynamoDBStore,
    wire: Wire,
    tenant: str,
    events: list[str],
    lose_response: Callable[[], None],
    attempt: str | None,
) -> None:
    lose_response()
    wire.fail("BatchGetItem", Fault.TIMEOUT_BEFORE, BOTOCORE_ATTEMPTS)
    with pytest.raises(StoreUnavailable):
        poll(store, tenant, attempt=attempt)

    assert wire.fault_count == 1 + BOTOCORE_ATTEMPTS
    assert claim(store, tenant, attempt=attempt) == events
    assert claim(store, tenant) == []


Settle = Callable[[DynamoDBStore, str, list[Receipt]], list[bool]]

SETTLE: dict[str, Settle] = {
    "acknowledge": lambda store, tenant, receipts: store.events.acknowledge(tenant, receipts, NOW),
    "release": lambda store, tenant, receipts: store.events.release(tenant, receipts, NOW, NOW),
    "extend": lambda store, tenant, receipts: store.events.extend(tenant, receipts, LEASE_UNTIL + 1, NOW),
}


@pytest.mark.usefixtures("events")
@pytest.mark.parametrize("settle", SETTLE.values(), ids=SETTLE)
def test_receipts_are_settled_although_the_response_is_lost(
    store: DynamoDBStore, wire: Wire, tenant: str, lose_response: Callable[[], None], settle: Settle
) -> None:
    receipts = receipts_of(poll(store, tenant, lease_until_ms=LEASE_UNTIL))
    lose_response()
    assert settle(store, tenant, receipts) == [True, True, True]
    assert wire.fault_count == 1


@pytest.mark.usefixtures("events")
@pytest.mark.parametrize("settle", SETTLE.values(), ids=SETTLE)
def test_receipts_stay_valid_if_the_read_fails_as_well(
    store: DynamoDBStore, wire: Wire, tenant: str, lose_response: Callable[[], None], settle: Settle
) -> None:
    receipts = receipts_of(poll(store, tenant, lease_until_ms=LEASE_UNTIL))
    lose_response()
    # The first read looks up the receipts.
    wire.fail("BatchGetItem", Fault.TIMEOUT_BEFORE, BOTOCORE_ATTEMPTS, after=1)
    with pytest.raises(StoreUnavailable):
        settle(store, tenant, receipts)
    assert settle(store, tenant, receipts) == [True, True, True]


def test_replayed_event_is_returned_although_the_response_is_lost(
    store: DynamoDBStore, wire: Wire, tenant: str, events: list[str], lose_response: Callable[[], None]
) -> None:
    claim(store, tenant)
    lose_response()
    event = store.events.replay(tenant, DEFAULT_INBOX, events[0], NOW)
    assert wire.fault_count == 1
    assert event is not None
    assert event.status is Status.UNDELIVERED


def test_update_of_an_erased_event_finds_nothing(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str, events: list[str]
) -> None:
    item = store._connection.get("Events", event_key(tenant, events[0]))
    assert item is not None
    event = to_known_event(item)
    assert other_store.events.erase(tenant, events[0], NOW)

    assert store.events._updates.apply([EventUpdate(event, event.consumed("claim", NOW))], NOW) == [UpdateResult()]


def test_event_with_an_idempotency_key_is_stored_once(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    wire.hides_old_items = True
    event = keyed_event()
    wire.fail("PutItem", Fault.CUT_AFTER, 1)

    assert [result.repeated for result in store.events.put(tenant, [event], NOW, LATER_S)] == [False]
    assert [result.repeated for result in store.events.put(tenant, [event], NOW, LATER_S)] == [True]
    with pytest.raises(IdempotencyConflict):
        store.events.put(tenant, [event._replace(fingerprint=b"another")], NOW, LATER_S)
    assert claim(store, tenant) == [event.event_id]


def test_event_is_not_accepted_if_the_event_with_its_idempotency_key_is_erased_meanwhile(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    """The store cannot tell if its own write succeeded and the event was erased, or the write never happened."""
    event = keyed_event()
    other_store.events.put(tenant, [event], NOW, LATER_S)
    wire.hides_old_items = True
    wire.fail(
        "BatchGetItem",
        Fault.TIMEOUT_BEFORE,
        1,
        then=lambda _body: other_store.events.erase(tenant, event.event_id, NOW),
    )
    with pytest.raises(StoreUnavailable):
        store.events.put(tenant, [event], NOW, LATER_S)
    assert claim(store, tenant) == []


def test_repeatable_poll_recognizes_its_own_attempt(
    store: DynamoDBStore,
    other_store: DynamoDBStore,
    wire: Wire,
    tenant: str,
    events: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = store.events._attempts._begin

    def claim_first(*arguments: Any) -> Any:
        """Another process claims the events that the poll has chosen, so the poll chooses again."""
        monkeypatch.setattr(store.events._attempts, "_begin", begin)
        assert claim(other_store, tenant, 1) == events[:1]
        return begin(*arguments)

    monkeypatch.setattr(store.events._attempts, "_begin", claim_first)
    wire.fail("PutItem", Fault.CUT_AFTER, 1, after=1)
    assert claim(store, tenant, 1, attempt="attempt-1") == events[1:2]
    assert wire.fault_count == 1
