"""Calls, write units and read units, counted on DynamoDB Local, which reports the same units as AWS."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, NewEvent, PageSize
from inbox.domain.inboxes import Inbox
from inbox.domain.tenants import TenantPosition, TenantSelection
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.items import to_known_event
from tests.contract.samples import ids
from tests.contract.samples import receipts as receipts_of
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import (
    LATER_S,
    LEASE_UNTIL,
    NOW,
    PAGE_BYTES,
    api_key,
    audit_entry,
    claim,
    new_event,
    poll,
    put_events,
    warm_up,
)
from tests.engines.harnesses import MAX_DELIVERIES
from tests.engines.wire import Wire


def query_undelivered(store: DynamoDBStore, tenant: str) -> list[dict[str, Any]]:
    """Returns the undelivered entries of the status index."""
    response = store._connection.call(
        "query",
        TableName=store._connection.table("Events"),
        IndexName="status-index",
        KeyConditionExpression="gsi1pk = :tenant AND begins_with(gsi1sk, :status)",
        ExpressionAttributeValues={":tenant": {"S": tenant}, ":status": {"S": "undelivered#"}},
    )
    items: list[dict[str, Any]] = response["Items"]
    return items


def test_poll_of_100_events_takes_6_calls(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    events = put_events(store, tenant, 150)
    wire.reset()

    assert claim(store, tenant, 100) == events[:100]
    # The first poll of a process also reads the schema version and probes if statements are conditional. The update
    # takes the claim token.
    assert dict(wire.calls) == {"Query": 1, "UpdateItem": 1, "GetItem": 1, "BatchExecuteStatement": 5}


def test_empty_poll_takes_1_query(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    claim(store, tenant)
    wire.reset()

    assert claim(store, tenant) == []
    assert dict(wire.calls) == {"Query": 1}


def test_1000_events_of_32_producers_take_up_to_80_write_calls(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    store.events.get(tenant, DEFAULT_INBOX, new_event().event_id, NOW)
    wire.reset()
    start = threading.Barrier(32)

    def produce(share: list[NewEvent]) -> None:
        start.wait(30)
        for event in share:
            assert not store.events.put(tenant, [event], NOW, LATER_S)[0].repeated

    events = [new_event() for _ in range(1000)]
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(produce, [events[producer::32] for producer in range(32)]))

    assert wire.write_calls <= 80, wire.calls
    # Named inboxes are queried once a second.
    assert set(wire.calls) <= {"BatchWriteItem", "PutItem", "Query"}
    claimed = claim(store, tenant, 500) + claim(store, tenant, 500)
    assert sorted(claimed) == sorted(event.event_id for event in events)


def test_single_event_is_written_at_once(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    # The cache does not expire, however slow the machine is.
    caching_store = DynamoDBStore(store._connection, MAX_DELIVERIES, inbox_cache_seconds=60)
    put_events(caching_store, tenant, 1)
    wire.reset()

    put_events(caching_store, tenant, 1)
    assert dict(wire.calls) == {"PutItem": 1}


@pytest.mark.parametrize(("event_type", "units"), [("order.created", 3), (None, 2)])
def test_small_event_costs_up_to_3_write_units(
    store: DynamoDBStore, wire: Wire, tenant: str, event_type: str | None, units: int
) -> None:
    store.events.put(tenant, [new_event(b'{"order":1001,"note":"%s"}' % (b"x" * 400), event_type)], NOW, LATER_S)

    assert wire.units["PutItem"] == units


def test_batch_costs_as_much_as_its_events(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    put_events(store, tenant, 100)

    assert wire.calls["BatchWriteItem"] == 4
    assert wire.units["BatchWriteItem"] == 300


def test_consumed_event_costs_3_write_units_and_a_poll_1(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    warm_up(store, tenant)
    store.events._claims._tokens._states.clear()
    put_events(store, tenant, 10)
    wire.reset()
    wire.measures_statements = True

    assert len(claim(store, tenant)) == 10
    assert (wire.units["BatchExecuteStatement"], wire.units["UpdateItem"]) == (30, 1)


def test_reading_the_index_costs_under_a_tenth_of_a_read_unit_per_event(
    store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    put_events(store, tenant, 100)
    wire.reset()

    assert len(claim(store, tenant, 100)) == 100
    assert wire.units["Query"] / 100 < 0.1


def test_recently_claimed_events_are_not_claimed_again(
    store: DynamoDBStore, wire: Wire, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index still lists these events, and claiming them again would cost a write unit each."""
    put_events(store, tenant, 5)
    shown = {each["gsi1sk"]["S"]: each for each in query_undelivered(store, tenant)}
    assert len(claim(store, tenant)) == 5
    wire.reset()

    def query_lagging_index(**parameters: Any) -> Any:
        first, last = (parameters["ExpressionAttributeValues"][name]["S"] for name in (":first", ":last"))
        return {"Items": [item for key, item in shown.items() if first <= key <= last]}

    monkeypatch.setattr(store._connection.client, "query", query_lagging_index)
    page = store.events.claim(tenant, DEFAULT_INBOX, PageSize(9, PAGE_BYTES), NOW)
    assert (page.events, page.more) == ([], False)
    assert not wire.calls


def test_events_claimed_by_another_poll_do_not_count_as_more(store: DynamoDBStore, tenant: str) -> None:
    events = put_events(store, tenant, 3)
    entries = [to_known_event(item) for item in query_undelivered(store, tenant)]
    store.events.claimable.outdated.add([entries[0], entries[2]])

    page = store.events.claim(tenant, DEFAULT_INBOX, PageSize(1, PAGE_BYTES), NOW)
    assert (ids(page.events), page.more) == ([events[1]], False)


def test_api_key_costs_2_read_units_and_recording_its_use_1_write_unit(
    store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    key = api_key(tenant)
    store.tenants.create(named(tenant), [audit_entry()])
    store.keys.create(key)
    wire.reset()

    assert store.keys.get_by_hash(key.key_hash) is not None
    assert (dict(wire.calls), wire.units["GetItem"]) == ({"GetItem": 2}, 2)
    store.keys.record_use(key.key_hash, NOW)
    assert (wire.write_calls, wire.units["UpdateItem"]) == (1, 1)


def test_page_of_tenants_takes_1_query(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    # No other test creates tenants with these creation times.
    for number in range(4):
        store.tenants.create(named(f"{tenant}-{number}", created_at_ms=number), [audit_entry()])
    wire.reset()

    page = store.tenants.page(TenantSelection(until_ms=4), 2, TenantPosition(3, f"{tenant}-3"))
    assert [each.tenant_id for each in page] == [f"{tenant}-2", f"{tenant}-1"]
    assert dict(wire.calls) == {"Query": 1}


def test_leased_and_acknowledged_event_costs_5_write_units_and_1_read_unit(
    store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    warm_up(store, tenant)
    put_events(store, tenant, 10)
    wire.reset()
    wire.measures_statements = True

    leased = poll(store, tenant, 10, lease_until_ms=LEASE_UNTIL)
    assert wire.units["BatchExecuteStatement"] == 20
    receipts = receipts_of(leased)
    assert store.events.acknowledge(tenant, receipts, NOW) == [True] * 10
    assert wire.units["BatchExecuteStatement"] == 50
    assert wire.units["BatchGetItem"] == 10


def test_acknowledging_100_events_takes_5_calls(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    put_events(store, tenant, 100)
    leased = poll(store, tenant, 100, lease_until_ms=LEASE_UNTIL)
    receipts = receipts_of(leased)
    wire.reset()

    assert all(store.events.acknowledge(tenant, receipts, NOW))
    assert dict(wire.calls) == {"BatchGetItem": 1, "BatchExecuteStatement": 4}


def test_copy_costs_2_write_units(store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    other_store.inboxes.save(tenant, Inbox("shipping", None, NOW))
    wire.reset()

    put_events(store, tenant, 10)
    assert wire.units["BatchWriteItem"] == 10 * (3 + 2)


def test_repeatable_poll_costs_1_more_write_unit_and_its_repeat_1(
    store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    put_events(store, tenant, 10)
    wire.reset()
    size = PageSize(10, PAGE_BYTES)

    first = store.events.claim(tenant, DEFAULT_INBOX, size, NOW, attempt="again")
    assert (len(first.events), wire.units["PutItem"], wire.calls["BatchGetItem"]) == (10, 1, 0)
    wire.reset()
    assert store.events.claim(tenant, DEFAULT_INBOX, size, NOW, attempt="again") == first
    assert (wire.write_calls, wire.units["UpdateItem"]) == (1, 1)
