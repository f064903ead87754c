"""Faults between the store and DynamoDB: no accepted event is lost or delivered twice."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from inbox.domain.events import DEFAULT_INBOX, NewEvent, Order, Selection, Status
from inbox.errors import IdempotencyConflict, StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import (
    BOTOCORE_ATTEMPTS,
    EVERYTHING,
    LATER_S,
    LEASE_UNTIL,
    NOW,
    api_key,
    audit_entry,
    claim,
    keyed_event,
    new_event,
    put_events,
    warm_up,
)
from tests.engines.wire import Fault, Wire

pytestmark = pytest.mark.usefixtures("no_pauses")

ONE_ATTEMPT, ATTEMPTS_OF_SEVERAL_CALLS = 1, 2 * BOTOCORE_ATTEMPTS + 1
BATCH_OPERATIONS = ("BatchWriteItem", "BatchGetItem", "BatchExecuteStatement")
BATCH_FAULTS = (Fault.HALF_UNPROCESSED, Fault.ALL_UNPROCESSED)


def list_cases() -> Iterator[tuple[str, str, Fault, int]]:
    """Yields an engine, an operation that the store uses there, a fault, and the number of attempts that fail."""
    operations_by_engine = {
        "dynamodb_local": ("GetItem", "PutItem", "Query", *BATCH_OPERATIONS),
        "moto": ("UpdateItem",),
    }
    for engine, operations in operations_by_engine.items():
        for operation in operations:
            for fault in Fault:
                if fault not in BATCH_FAULTS or operation in BATCH_OPERATIONS:
                    for times in (ONE_ATTEMPT, ATTEMPTS_OF_SEVERAL_CALLS):
                        yield engine, operation, fault, times


def put(store: DynamoDBStore, tenant: str, events: list[NewEvent]) -> bool:
    """Returns True if the events were accepted."""
    try:
        store.events.put(tenant, events, NOW, LATER_S)
    except StoreUnavailable:
        return False
    return True


@pytest.mark.parametrize(
    ("engine", "operation", "fault", "times"),
    list(list_cases()),
    indirect=["engine"],
    ids=lambda value: getattr(value, "value", value),
)
def test_no_accepted_event_is_lost_or_delivered_twice(
    store: DynamoDBStore, wire: Wire, tenant: str, operation: str, fault: Fault, times: int
) -> None:
    first = warm_up(store, tenant)
    single, batch, repeated = [new_event()], [new_event() for _ in range(27)], [keyed_event(), keyed_event()]
    wire.fail(operation, fault, times)

    accepted = Counter[str]()
    for events in (single, batch):
        if put(store, tenant, events):
            accepted.update(event.event_id for event in events)
    # Clients that send an idempotency key retry.
    assert any(put(store, tenant, repeated) for _ in range(10))
    accepted.update(event.event_id for event in repeated)

    delivered = Counter[str]()
    empty_polls = 0
    while empty_polls < 4:
        try:
            page = claim(store, tenant, 9)
        except StoreUnavailable:
            page = []
        delivered.update(page)
        empty_polls = 0 if page else empty_polls + 1

    assert wire.fault_count
    assert accepted <= delivered
    assert set(delivered.values()) == {1}
    listed = store.events.page(tenant, Selection(status=Status.DELIVERED), Order.OLDEST, EVERYTHING, None, NOW)
    assert Counter(event.event_id for event in listed.events) == delivered + Counter([first])


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault not in BATCH_FAULTS])
@pytest.mark.parametrize("operation", ["PutItem", "GetItem", "Query", "BatchGetItem"])
def test_one_failed_attempt_is_retried(
    store: DynamoDBStore, wire: Wire, tenant: str, operation: str, fault: Fault
) -> None:
    wire.fail(operation, fault, ONE_ATTEMPT)
    event = keyed_event()

    assert store.events.put(tenant, [event], NOW, LATER_S)[0].repeated is False
    assert store.events.get(tenant, DEFAULT_INBOX, event.event_id, NOW) is not None
    assert claim(store, tenant) == [event.event_id]
    assert wire.fault_count == 1


@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.CUT_AFTER, Fault.SERVER_ERROR_AFTER])
def test_event_polled_before_a_lost_response_stays_delivered(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, fault: Fault
) -> None:
    events = [new_event() for _ in range(10)]
    polled: list[str] = []
    wire.fail("BatchWriteItem", fault, ONE_ATTEMPT, then=lambda _body: polled.extend(claim(other_store, tenant)))

    assert put(store, tenant, events)
    assert sorted(polled) == sorted(event.event_id for event in events)
    assert claim(store, tenant) == []


def test_batch_that_arrives_late_makes_no_event_undelivered_again(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    events, late_requests = [new_event() for _ in range(10)], list[dict[str, Any]]()
    wire.fail("BatchWriteItem", Fault.TIMEOUT_BEFORE, ONE_ATTEMPT, then=late_requests.append)

    is_accepted = put(store, tenant, events)
    polled = claim(other_store, tenant)
    (late,) = late_requests
    store._connection.call("batch_write_item", **late)
    polled += claim(store, tenant)

    assert sorted(polled) == sorted(event.event_id for event in events)
    # The batch was not stored when the request ended.
    assert not is_accepted


def test_batch_that_was_never_sent_is_not_looked_up(
    store: DynamoDBStore, wire: Wire, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, tenant, [new_event()])
    wire.reset()

    def refuse_connection(**_: Any) -> Any:
        raise EndpointConnectionError(endpoint_url="http://127.0.0.1")

    monkeypatch.setattr(store._connection._client_without_retries, "batch_write_item", refuse_connection)
    assert not put(store, tenant, [new_event() for _ in range(25)])
    assert not wire.calls


def test_race_for_an_idempotency_key_loses_no_accepted_event(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    mine = [keyed_event(fingerprint=b"same") for _ in range(3)]
    theirs: list[NewEvent] = []

    def store_another(body: dict[str, Any]) -> None:
        contested = body["Item"]["sk"]["S"]
        theirs.extend(event._replace(fingerprint=b"theirs") if event.event_id == contested else event for event in mine)
        other_store.events.put(tenant, theirs, NOW, LATER_S)

    # The store has already read that no key is taken.
    wire.fail("PutItem", Fault.TIMEOUT_BEFORE, 1, after=1, then=store_another)
    assert not put(store, tenant, mine)
    with pytest.raises(IdempotencyConflict):
        store.events.put(tenant, mine, NOW, LATER_S)
    assert sorted(claim(store, tenant)) == sorted(event.event_id for event in theirs)


@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.CUT_AFTER, Fault.SERVER_ERROR_AFTER, Fault.THROTTLED])
def test_tenants_and_api_keys_survive_a_lost_response(
    store: DynamoDBStore, wire: Wire, tenant: str, fault: Fault
) -> None:
    first = named(tenant, email=f"ops@{tenant}.example")
    second = replace(first, email=f"it@{tenant}.example", version=2)
    key, successor = api_key(tenant), api_key(tenant)
    acts: list[Callable[[], object]] = [
        lambda: store.tenants.create(first, [audit_entry(1)]),
        lambda: store.tenants.update(second, 1, [audit_entry(2)]),
        lambda: store.keys.create(key),
        lambda: store.keys.rotate(key.key_id, successor, NOW + 5),
    ]
    results = []
    for act in acts:
        wire.fail("TransactWriteItems", fault, ONE_ATTEMPT)
        results.append(act())

    assert wire.fault_count == len(acts)
    assert results == [None, True, None, True]
    assert store.tenants.get(tenant) == second
    assert store.tenants.audit_log(tenant, 9, None) == [audit_entry(2), audit_entry(1)]
    assert set(store.keys.all(tenant)) == {replace(key, expires_at_ms=NOW + 5), successor}


@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.THROTTLED])
def test_recording_a_use_survives_a_lost_response(store: DynamoDBStore, wire: Wire, tenant: str, fault: Fault) -> None:
    key = api_key(tenant)
    store.tenants.create(named(tenant), [audit_entry()])
    store.keys.create(key)
    wire.fail("UpdateItem", fault, ONE_ATTEMPT)
    store.keys.record_use(key.key_hash, NOW)

    assert wire.fault_count == 1
    assert store.keys.get(key.key_id) == replace(key, last_used_at_ms=NOW)


@pytest.mark.parametrize("fault", [Fault.TIMEOUT_BEFORE, Fault.THROTTLED, Fault.SERVER_ERROR])
def test_check_fails_while_dynamodb_does_not_respond(store: DynamoDBStore, wire: Wire, fault: Fault) -> None:
    store.check()
    wire.fail("DeleteItem", fault, BOTOCORE_ATTEMPTS)
    with pytest.raises(StoreUnavailable):
        store.check()
    store.check()


@pytest.mark.parametrize("lease_until_ms", [None, LEASE_UNTIL], ids=["consume", "lease"])
def test_poll_returns_nothing_behind_an_event_that_stays_throttled(
    store: DynamoDBStore,
    other_store: DynamoDBStore,
    wire: Wire,
    tenant: str,
    lease_until_ms: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warm_up(store, tenant)
    events = put_events(store, tenant, 6)
    monkeypatch.setattr("inbox.store.dynamodb.connection.MAX_SECONDS", 0.5)
    wire.throttles = lambda statement: {"S": events[2]} in statement["Parameters"]

    assert claim(store, tenant, lease_until_ms=lease_until_ms) == events[:2]
    with pytest.raises(StoreUnavailable):
        claim(store, tenant, lease_until_ms=lease_until_ms)
    monkeypatch.undo()
    wire.throttles = None
    # The claim that was throttled has not taken the event, so another process can have it at once, and all behind it.
    assert claim(other_store, tenant, now_ms=NOW + 10_000, lease_until_ms=lease_until_ms) == events[2:]


def test_throttling_for_seconds_does_not_end_a_poll(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    warm_up(store, tenant)
    events = put_events(store, tenant, 30)
    refusals = iter([True] * 200)
    wire.throttles = lambda _statement: next(refusals, False)

    assert claim(store, tenant) == events


def test_claim_that_is_throttled_after_a_lost_response_is_in_doubt(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm_up(store, tenant)
    events = put_events(store, tenant, 1)
    monkeypatch.setattr("inbox.store.dynamodb.connection.MAX_SECONDS", 0.5)
    wire.throttles = lambda _statement: True
    wire.fail("BatchExecuteStatement", Fault.CUT_AFTER, 1)
    with pytest.raises(StoreUnavailable):
        claim(store, tenant)
    wire.throttles = None

    assert claim(other_store, tenant, now_ms=NOW + 10_000) == []
    assert claim(store, tenant, now_ms=NOW + 20_000) == events
