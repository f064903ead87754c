"""Payloads above 1 KB, which have an item of their own beside their event."""

import random
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, NewEvent, Order, Selection, Status
from inbox.domain.inboxes import Inbox
from inbox.errors import IdempotencyConflict, StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.event_writer import EventWriter
from inbox.store.dynamodb.layout import EVENTS, SCHEMA_KEY, TENANTS, Item, event_key
from tests.contract.samples import receipts as receipts_of
from tests.dynamodb.conftest import (
    BOTOCORE_ATTEMPTS,
    EVERYTHING,
    LATER_S,
    LEASE_UNTIL,
    NOW,
    claim,
    keyed_event,
    new_event,
    poll,
    put_events,
    total_counts,
    warm_up,
)
from tests.engines.harnesses import DynamoDBHarness
from tests.engines.wire import Fault, Wire

# Random bytes cannot be compressed.
LARGE = b'{"document":"%s"}' % b64encode(random.Random(25).randbytes(9_000))
OTHER = LARGE.replace(b"document", b"invoices")


def read_items(harness: DynamoDBHarness, tenant: str) -> list[str]:
    """Returns the sort keys of all items of the tenant."""
    values = {":tenant": {"S": tenant}}
    query = {"KeyConditionExpression": "pk = :tenant", "ExpressionAttributeValues": values, "ConsistentRead": True}
    return [item["sk"]["S"] for item in harness.connection.query_items(EVENTS, **query)]


def put(store: DynamoDBStore, tenant: str, *events: NewEvent) -> list[bool]:
    return [result.repeated for result in store.events.put(tenant, events, NOW, LATER_S)]


@pytest.mark.parametrize("has_key", [False, True])
@pytest.mark.parametrize("count", [1, 30])
def test_every_call_returns_the_payload(store: DynamoDBStore, tenant: str, has_key: bool, count: int) -> None:
    events = [keyed_event(LARGE) if has_key else new_event(LARGE) for _ in range(count)]
    put(store, tenant, *events)
    event_id = events[0].event_id

    peeked = store.events.peek(tenant, DEFAULT_INBOX, Order.OLDEST, EVERYTHING, NOW).events
    listed = store.events.page(tenant, Selection(), Order.OLDEST, EVERYTHING, None, NOW).events
    leased = poll(store, tenant, count, lease_until_ms=LEASE_UNTIL)
    assert all(store.events.release(tenant, receipts_of(leased), NOW, NOW))
    repeatable = poll(store, tenant, attempt="attempt-1")
    repeated = poll(store, tenant, attempt="attempt-1")
    replayed = store.events.replay(tenant, DEFAULT_INBOX, event_id, NOW)
    found = store.events.get(tenant, DEFAULT_INBOX, event_id, NOW)
    consumed = poll(store, tenant)
    assert replayed is not None
    assert found is not None
    for each in (peeked, listed, leased, repeatable, repeated, [replayed], [found], consumed):
        assert {event.payload for event in each} == {LARGE}
    assert [len(each) for each in (peeked, listed, leased, repeatable, repeated)] == [count] * 5


def test_claims_do_not_write_the_payload_again(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    warm_up(store, tenant)
    put(store, tenant, new_event(LARGE))
    wire.reset()
    wire.measures_statements = True
    (event,) = poll(store, tenant, lease_until_ms=LEASE_UNTIL)
    assert store.events.acknowledge(tenant, receipts_of([event]), NOW) == [True]
    assert wire.units["BatchExecuteStatement"] == 5


def test_copies_share_the_payload(store: DynamoDBStore, uncached_store: DynamoDBStore, tenant: str) -> None:
    uncached_store.inboxes.save(tenant, Inbox("crm", None, NOW))
    event = new_event(LARGE)
    put(uncached_store, tenant, event)
    sort_keys = [event.event_id, f"{event.event_id}#:payload", f"{event.event_id}#crm"]
    found = store._connection.get_many(
        EVENTS, [event_key(tenant, event.event_id) | {"sk": {"S": each}} for each in sort_keys]
    )
    assert sorted(len(str(item)) > 9_000 for item in found) == [False, False, True]
    assert [each.payload for each in poll(uncached_store, tenant, inbox="crm")] == [LARGE]


def test_erasing_an_event_deletes_its_payload(harness: DynamoDBHarness, store: DynamoDBStore, tenant: str) -> None:
    event = new_event(LARGE)
    put(store, tenant, event)
    assert store.events.erase(tenant, event.event_id, NOW) is True
    assert read_items(harness, tenant) == []
    assert store.events.erase(tenant, event.event_id, NOW) is False


def test_repeat_under_an_idempotency_key_writes_no_payload(
    harness: DynamoDBHarness, store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    event = keyed_event(LARGE)
    assert put(store, tenant, event) == [False]
    wire.reset()
    assert put(store, tenant, event) == [True]
    assert wire.write_calls == 0
    with pytest.raises(IdempotencyConflict):
        put(store, tenant, event._replace(payload=OTHER, fingerprint=b"second"))
    assert len(read_items(harness, tenant)) == 2
    assert [each.payload for each in poll(store, tenant)] == [LARGE]


def test_race_for_an_idempotency_key_keeps_the_payload_of_the_first_event(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    first = keyed_event(LARGE)
    second = first._replace(payload=OTHER, fingerprint=b"second")
    # The second store has read that the key is free.
    wire.fail("BatchGetItem", Fault.SERVER_ERROR_AFTER, 1, then=lambda _body: put(other_store, tenant, first))
    wire.fail("PutItem", Fault.TIMEOUT_BEFORE, 1, then=lambda _body: put(other_store, tenant, first))
    with pytest.raises(IdempotencyConflict):
        put(store, tenant, second)
    assert [each.payload for each in poll(store, tenant)] == [LARGE]


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("count", [1, 30])
def test_event_is_not_stored_without_its_payload(store: DynamoDBStore, wire: Wire, tenant: str, count: int) -> None:
    operation = "PutItem" if count == 1 else "BatchWriteItem"
    store.schema.get()
    wire.fail(operation, Fault.TIMEOUT_BEFORE, BOTOCORE_ATTEMPTS)
    with pytest.raises(StoreUnavailable):
        put(store, tenant, *(new_event(LARGE) for _ in range(count)))
    assert claim(store, tenant) == []


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("lease_until_ms", [None, LEASE_UNTIL], ids=["consume", "lease"])
def test_claimed_events_are_given_back_if_their_payloads_cannot_be_read(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, lease_until_ms: int | None
) -> None:
    warm_up(store, tenant)
    events = [new_event(LARGE) for _ in range(3)]
    put(store, tenant, *events)
    wire.fail("BatchGetItem", Fault.TIMEOUT_BEFORE, BOTOCORE_ATTEMPTS)
    with pytest.raises(StoreUnavailable):
        claim(store, tenant, lease_until_ms=lease_until_ms)
    expected = [event.event_id for event in events]
    assert claim(other_store, tenant, now_ms=NOW + 10_000, lease_until_ms=lease_until_ms) == expected


def test_recount_ignores_payloads(store: DynamoDBStore, tenant: str) -> None:
    put(store, tenant, new_event(LARGE), new_event(LARGE))
    put_events(store, tenant, 1)
    store.counters.flush()
    counted = total_counts(store, tenant)
    store.counters.recount(tenant, 0, NOW)
    assert total_counts(store, tenant) == counted
    assert counted.received == 3


def test_payload_stays_in_the_event_while_earlier_releases_may_read_it(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    version = harness.connection.get(TENANTS, SCHEMA_KEY)
    assert version is not None
    key = {"TableName": store._connection.table(TENANTS), "Key": SCHEMA_KEY}
    harness.connection.call("delete_item", **key)
    try:
        event = new_event(LARGE)
        put(store, tenant, event)
    finally:
        harness.connection.call("put_item", TableName=key["TableName"], Item=version)
    assert read_items(harness, tenant) == [event.event_id]
    assert store.events.page(tenant, Selection(status=Status.UNDELIVERED), Order.OLDEST, EVERYTHING, None, NOW).events
    assert [each.payload for each in poll(store, tenant)] == [LARGE]


@pytest.mark.usefixtures("no_pauses")
def test_event_that_was_given_back_late_is_not_delivered_twice(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    warm_up(store, tenant)
    event, late = new_event(LARGE), list[dict[str, Any]]()
    put(store, tenant, event)
    # The payload cannot be read after the claim, and the update that gives the event back has no response.
    wire.fail("BatchGetItem", Fault.TIMEOUT_BEFORE, BOTOCORE_ATTEMPTS)
    wire.fail("BatchExecuteStatement", Fault.TIMEOUT_BEFORE, BOTOCORE_ATTEMPTS, after=1, then=late.append)
    with pytest.raises(StoreUnavailable):
        claim(store, tenant)
    wire.reset()

    assert claim(store, tenant) == [event.event_id]
    statements = next(body for body in late if "Statements" in body)
    other_store._connection.client.batch_execute_statement(Statements=statements["Statements"])
    assert claim(other_store, tenant, now_ms=NOW + 10_000) == []


def test_payload_is_erased_before_its_event(store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    event = keyed_event(LARGE)
    put(store, tenant, event)
    deleted: list[list[str]] = []
    delete = EventWriter.delete_returning

    def record(writer: EventWriter, keys: Sequence[Item]) -> list[Item]:
        deleted.append([key["sk"]["S"] for key in keys])
        return delete(writer, keys)

    monkeypatch.setattr(EventWriter, "delete_returning", record)
    assert store.events.erase(tenant, event.event_id, NOW)
    (payload,), (of_event,) = deleted
    assert of_event == event.event_id
    assert payload.startswith(f"{event.event_id}#:payload")
