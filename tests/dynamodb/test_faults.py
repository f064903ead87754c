"""Whatever goes wrong on the way to DynamoDB: nothing that was accepted is lost, and nothing comes out twice."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from inbox.domain.events import DEFAULT_INBOX, NewEvent, Order, PageSize, Selection, Status
from inbox.errors import IdempotencyConflict, StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import (
    ALL_ATTEMPTS,
    ANY_SIZE,
    LATER,
    NOW,
    claim,
    entry,
    fresh,
    have_polled_before,
    key_of,
    keyed,
)
from tests.engines.wire import Fault, Wire

pytestmark = pytest.mark.usefixtures("no_pauses")

ONE_ATTEMPT, SEVERAL_CALLS = 1, 7
BATCHES = ("BatchWriteItem", "BatchGetItem", "BatchExecuteStatement")
OF_BATCHES = (Fault.HALF, Fault.NONE)


def cases() -> Iterator[tuple[str, str, Fault, int]]:
    """Every operation, on the engine on which the store uses it."""
    on_both = {"dynamodb_local": ("GetItem", "PutItem", "Query", *BATCHES), "moto": ("UpdateItem",)}
    for engine, operations in on_both.items():
        for operation in operations:
            for fault in Fault:
                if fault not in OF_BATCHES or operation in BATCHES:
                    for times in (ONE_ATTEMPT, SEVERAL_CALLS):
                        yield engine, operation, fault, times


def put(store: DynamoDBStore, tenant: str, events: list[NewEvent]) -> bool:
    """Whether it was accepted."""
    try:
        store.events.put(tenant, events, NOW, LATER)
    except StoreUnavailable:
        return False
    return True


@pytest.mark.parametrize(
    ("engine", "operation", "fault", "times"),
    list(cases()),
    indirect=["engine"],
    ids=lambda value: getattr(value, "value", value),
)
def test_nothing_accepted_is_lost_and_nothing_comes_out_twice(
    store: DynamoDBStore, wire: Wire, tenant: str, operation: str, fault: Fault, times: int
) -> None:
    first = have_polled_before(store, tenant)
    lone, batch, repeated = [fresh()], [fresh() for _ in range(27)], [keyed(), keyed()]
    wire.fail(operation, fault, times)

    accepted = Counter[str]()
    for events in (lone, batch):
        if put(store, tenant, events):
            accepted.update(event.event_id for event in events)
    # Whoever gives a key tries again.
    assert any(put(store, tenant, repeated) for _ in range(10))
    accepted.update(event.event_id for event in repeated)

    came_out = Counter[str]()
    polls_that_found_nothing = 0
    while polls_that_found_nothing < 4:
        try:
            taken = claim(store, tenant, 9)
        except StoreUnavailable:
            taken = []
        came_out.update(taken)
        polls_that_found_nothing = 0 if taken else polls_that_found_nothing + 1

    assert wire.fired
    assert accepted <= came_out
    assert set(came_out.values()) == {1}
    peeked = store.events.page(
        tenant, Selection(status=Status.DELIVERED), Order.OLDEST, PageSize(500, ANY_SIZE), None, NOW
    )
    assert Counter(event.event_id for event in peeked.events) == came_out + Counter([first])


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault not in OF_BATCHES])
@pytest.mark.parametrize("operation", ["PutItem", "GetItem", "Query", "BatchGetItem"])
def test_one_lost_attempt_is_nobodys_business(
    store: DynamoDBStore, wire: Wire, tenant: str, operation: str, fault: Fault
) -> None:
    wire.fail(operation, fault, ONE_ATTEMPT)
    event = keyed()

    assert store.events.put(tenant, [event], NOW, LATER)[0].replayed is False
    assert store.events.get(tenant, DEFAULT_INBOX, event.event_id, NOW) is not None
    assert claim(store, tenant) == [event.event_id]
    assert wire.fired == 1


@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.CUT_AFTER, Fault.SERVER_ERROR_AFTER])
def test_an_event_that_was_polled_while_its_answer_was_lost_is_not_undelivered_again(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, fault: Fault
) -> None:
    events = [fresh() for _ in range(10)]
    polled: list[str] = []
    wire.fail("BatchWriteItem", fault, ONE_ATTEMPT, then=lambda _body: polled.extend(claim(other_store, tenant)))

    assert put(store, tenant, events)
    assert sorted(polled) == sorted(event.event_id for event in events)
    assert claim(store, tenant) == []


def test_a_batch_that_arrives_after_it_was_given_up_brings_nothing_back(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    events, on_its_way = [fresh() for _ in range(10)], list[dict[str, Any]]()
    wire.fail("BatchWriteItem", Fault.TIMEOUT_BEFORE, ONE_ATTEMPT, then=on_its_way.append)

    was_accepted = put(store, tenant, events)
    polled = claim(other_store, tenant)
    (late,) = on_its_way
    store._connection.call("batch_write_item", **late)
    polled += claim(store, tenant)

    assert sorted(polled) == sorted(event.event_id for event in events)
    # Nobody can say so as long as it is not there.
    assert not was_accepted


def test_a_batch_that_was_surely_not_written_is_not_looked_for(
    store: DynamoDBStore, wire: Wire, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, tenant, [fresh()])
    wire.reset()

    def refuse(**_: Any) -> Any:
        raise EndpointConnectionError(endpoint_url="http://127.0.0.1")

    monkeypatch.setattr(store._connection._client_without_retries, "batch_write_item", refuse)
    assert not put(store, tenant, [fresh() for _ in range(25)])
    assert not wire.calls


def test_a_race_for_a_key_loses_nothing_that_anybody_was_promised(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    mine = [keyed(fingerprint=b"same") for _ in range(3)]
    theirs: list[NewEvent] = []

    def take_its_key(body: dict[str, Any]) -> None:
        contested = body["Item"]["sk"]["S"]
        theirs.extend(event._replace(fingerprint=b"theirs") if event.event_id == contested else event for event in mine)
        other_store.events.put(tenant, theirs, NOW, LATER)

    # The store has looked already, and found all keys free.
    wire.fail("PutItem", Fault.TIMEOUT_BEFORE, 1, after=1, then=take_its_key)
    assert not put(store, tenant, mine)
    with pytest.raises(IdempotencyConflict):
        store.events.put(tenant, mine, NOW, LATER)
    assert sorted(claim(store, tenant)) == sorted(event.event_id for event in theirs)


@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.CUT_AFTER, Fault.SERVER_ERROR_AFTER, Fault.THROTTLED])
def test_tenants_and_keys_survive_a_lost_answer(store: DynamoDBStore, wire: Wire, tenant: str, fault: Fault) -> None:
    first = named(tenant, email=f"ops@{tenant}.example")
    second = replace(first, email=f"it@{tenant}.example", version=2)
    key, successor = key_of(tenant), key_of(tenant)
    acts: list[Callable[[], object]] = [
        lambda: store.tenants.create(first, [entry(1)]),
        lambda: store.tenants.update(second, 1, [entry(2)]),
        lambda: store.keys.create(key),
        lambda: store.keys.rotate(key.key_id, successor, NOW + 5),
    ]
    answers = []
    for act in acts:
        wire.fail("TransactWriteItems", fault, ONE_ATTEMPT)
        answers.append(act())

    assert wire.fired == len(acts)
    assert answers == [None, True, None, True]
    assert store.tenants.get(tenant) == second
    assert store.tenants.audit_log(tenant, 9, None) == [entry(2), entry(1)]
    assert set(store.keys.all(tenant)) == {replace(key, expires_at_ms=NOW + 5), successor}


@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.THROTTLED])
def test_noting_a_use_survives_a_lost_answer(store: DynamoDBStore, wire: Wire, tenant: str, fault: Fault) -> None:
    key = key_of(tenant)
    store.tenants.create(named(tenant), [entry()])
    store.keys.create(key)
    wire.fail("UpdateItem", fault, ONE_ATTEMPT)
    store.keys.record_use(key.key_hash, NOW)

    assert wire.fired == 1
    assert store.keys.get(key.key_id) == replace(key, last_used_at_ms=NOW)


@pytest.mark.parametrize("operation", ["DeleteItem"])
@pytest.mark.parametrize("fault", [Fault.TIMEOUT_BEFORE, Fault.THROTTLED, Fault.SERVER_ERROR])
def test_the_check_says_when_the_engine_does_not_answer(
    store: DynamoDBStore, wire: Wire, operation: str, fault: Fault
) -> None:
    store.check()
    wire.fail(operation, fault, ALL_ATTEMPTS)
    with pytest.raises(StoreUnavailable):
        store.check()
    store.check()
