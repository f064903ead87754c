"""Calls that name an item twice. DynamoDB refuses a batch that does, as a whole."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, Event, ExportedEvent, Order, Receipt, Selection, Status
from inbox.domain.inboxes import Inbox
from inbox.errors import IdempotencyConflict
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import MAX_BATCH_WRITE
from inbox.store.dynamodb.layout import EVENTS, STATUS_INDEX, event_key, make_index_partition
from inbox.store.dynamodb.shards import NOTICE_MS
from tests.contract.samples import ids, receipt
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import (
    EVERYTHING,
    LATER_S,
    LEASE_UNTIL,
    NOW,
    audit_entry,
    claim,
    keyed_event,
    new_event,
    poll,
    put_events,
)
from tests.engines.harnesses import MAX_DELIVERIES

pytestmark = pytest.mark.usefixtures("no_pauses")

Settle = Callable[[DynamoDBStore, str, list[Receipt]], list[bool]]

each_settlement = pytest.mark.parametrize(
    "settle",
    [
        lambda store, tenant, receipts: store.events.acknowledge(tenant, receipts, NOW),
        lambda store, tenant, receipts: store.events.release(tenant, receipts, NOW, NOW),
        lambda store, tenant, receipts: store.events.release(tenant, receipts, NOW + 1, NOW, failed=True),
        lambda store, tenant, receipts: store.events.extend(tenant, receipts, LEASE_UNTIL + 1, NOW),
    ],
    ids=["acknowledge", "release", "fail", "extend"],
)

MORE_THAN_A_BATCH = MAX_BATCH_WRITE + 5


@pytest.fixture
def store(uncached_store: DynamoDBStore) -> DynamoDBStore:
    return uncached_store


@pytest.fixture(params=["unsharded", "sharded"])
def sharded(request: pytest.FixtureRequest, store: DynamoDBStore, tenant: str) -> None:
    """With shards, an event may be in one of several partitions, so a lookup names several keys."""
    if request.param == "sharded":
        store.tenants.create(named(tenant), [audit_entry()])
        for shards in (2, 3):
            store.tenants.shard(tenant, shards, NOW - 2 * NOTICE_MS)


# Leases


@each_settlement
@pytest.mark.usefixtures("sharded")
def test_receipt_may_be_given_twice(store: DynamoDBStore, tenant: str, settle: Settle) -> None:
    put_events(store, tenant, 2)
    first, second = map(receipt, poll(store, tenant, lease_until_ms=LEASE_UNTIL))
    assert settle(store, tenant, [first, *[second] * MORE_THAN_A_BATCH, first]) == [True] * (MORE_THAN_A_BATCH + 2)


@each_settlement
@pytest.mark.parametrize("old_first", [True, False])
@pytest.mark.usefixtures("sharded")
def test_old_and_new_receipt_of_an_event_may_be_given_together(
    store: DynamoDBStore, tenant: str, settle: Settle, old_first: bool
) -> None:
    put_events(store, tenant, 1)
    (old,) = map(receipt, poll(store, tenant, now_ms=NOW - 2, lease_until_ms=NOW - 1))
    (new,) = map(receipt, poll(store, tenant, lease_until_ms=LEASE_UNTIL))
    given = [old, new, old] if old_first else [new, old, new]
    assert settle(store, tenant, given) == [each == new for each in given]


@each_settlement
@pytest.mark.usefixtures("sharded")
def test_receipts_of_an_event_in_two_inboxes_may_be_given_together(
    store: DynamoDBStore, tenant: str, settle: Settle
) -> None:
    store.inboxes.save(tenant, Inbox("crm", None, NOW))
    put_events(store, tenant, 1)
    receipts = [
        receipt(event)
        for inbox in (DEFAULT_INBOX, "crm")
        for event in poll(store, tenant, inbox=inbox, lease_until_ms=LEASE_UNTIL)
    ]
    assert settle(store, tenant, receipts * 2) == [True] * 4


# Batches


@pytest.mark.usefixtures("sharded")
def test_idempotency_key_may_be_given_twice_in_a_batch(store: DynamoDBStore, tenant: str) -> None:
    store.inboxes.save(tenant, Inbox("crm", None, NOW))
    keyed, plain = keyed_event(), new_event()
    batch = [keyed, plain, *[keyed] * MORE_THAN_A_BATCH]
    for is_repeated in (False, True):
        batch[1] = new_event()
        results = store.events.put(tenant, batch, NOW, LATER_S)
        assert ids_of_results(results) == ids(batch)
        assert [each.repeated for each in results] == [is_repeated, False, *[True] * MORE_THAN_A_BATCH]
    for inbox in (DEFAULT_INBOX, "crm"):
        claimed = claim(store, tenant, inbox=inbox)
        assert (len(claimed), claimed.count(keyed.event_id)) == (3, 1)


def ids_of_results(results: list[Any]) -> list[str]:
    return [each.event_id for each in results]


def test_idempotency_key_of_two_events_in_a_batch_is_a_conflict(store: DynamoDBStore, tenant: str) -> None:
    first = keyed_event()
    with pytest.raises(IdempotencyConflict) as refused:
        store.events.put(tenant, [first, first._replace(fingerprint=b"second")], NOW, LATER_S)
    assert refused.value.positions == (1,)
    assert claim(store, tenant) == []


# Import


@pytest.mark.parametrize("fingerprint", [None, b"first"], ids=["plain", "keyed"])
@pytest.mark.parametrize("count", [2, MORE_THAN_A_BATCH])
def test_event_may_be_twice_in_an_import(
    store: DynamoDBStore, tenant: str, fingerprint: bytes | None, count: int
) -> None:
    stored = ExportedEvent(1, exported(Status.UNDELIVERED), fingerprint, LATER_S)
    delivered = stored.event._replace(status=Status.DELIVERED, deliveries=1, delivered_at_ms=NOW)
    changed = replace(stored, event=delivered)
    other = ExportedEvent(2, exported(Status.UNDELIVERED), None, LATER_S)

    assert store.events.import_events(tenant, [*[stored] * count, other], NOW).too_large == []
    assert store.events.import_events(tenant, [*[changed] * count, other], NOW).too_large == []
    listed = store.events.page(tenant, Selection(), Order.OLDEST, EVERYTHING, None, NOW).events
    assert [each.status for each in listed] == [Status.DELIVERED, Status.UNDELIVERED]
    assert claim(store, tenant) == [other.event.event_id]


def exported(status: Status) -> Event:
    new = new_event()
    return Event(new.event_id, new.event_type, NOW, status, 0, None, new.payload)


# An index that lags may list an event in two states.


def keep_listing(store: DynamoDBStore, monkeypatch: pytest.MonkeyPatch, index_partition: str) -> None:
    """Makes the index list the entries that it has now as well, whatever becomes of the events."""
    query = store._connection.client.query
    earlier = query(
        TableName=store._connection.table(EVENTS),
        IndexName=STATUS_INDEX,
        KeyConditionExpression="gsi1pk = :partition",
        ExpressionAttributeValues={":partition": {"S": index_partition}},
    )["Items"]

    def query_lagging_index(**parameters: Any) -> Any:
        response = query(**parameters)
        values = parameters["ExpressionAttributeValues"]
        if values.get(":partition") == {"S": index_partition}:
            first, last = (values.get(name, {"S": bound})["S"] for name, bound in ((":first", ""), (":last", "~")))
            unlisted = [
                item for item in earlier if first <= item["gsi1sk"]["S"] <= last and item not in response["Items"]
            ]
            response["Items"] = sorted(response["Items"] + unlisted, key=lambda item: str(item["gsi1sk"]["S"]))
        return response

    monkeypatch.setattr(store._connection.client, "query", query_lagging_index)


def test_death_of_an_event_that_the_index_lists_twice_is_written(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = put_events(store, tenant, 2)
    for step in range(MAX_DELIVERIES):
        now_ms = NOW + 10 * step
        leased = poll(store, tenant, now_ms=now_ms, lease_until_ms=now_ms + 5)
    keep_listing(store, monkeypatch, tenant)
    assert all(store.events.extend(tenant, [receipt(event) for event in leased], now_ms + 7, now_ms))

    assert claim(store, tenant, now_ms=now_ms + 9) == []
    stored = store._connection.get_many(EVENTS, [event_key(tenant, event_id) for event_id in events])
    assert [item["status"]["S"] for item in stored] == [Status.DEAD, Status.DEAD]


@pytest.mark.parametrize("attempt", [None, "attempt-1"])
def test_event_whose_lease_the_index_lists_twice_is_claimed_once(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch, attempt: str | None
) -> None:
    events = put_events(store, tenant, 3)
    leased = poll(store, tenant, lease_until_ms=NOW + 5)
    keep_listing(store, monkeypatch, tenant)
    assert all(store.events.extend(tenant, [receipt(event) for event in leased], NOW + 7, NOW))

    claimed = claim(store, tenant, now_ms=NOW + 9, attempt=attempt)
    claimed += claim(store, tenant, now_ms=NOW + 9)
    monkeypatch.undo()
    # What was tried under an outdated entry is claimed once the index has caught up.
    claimed += claim(DynamoDBStore(store._connection, MAX_DELIVERIES), tenant, now_ms=NOW + 9)
    assert sorted(claimed) == sorted(events)


def test_event_that_the_index_lists_twice_is_replayed_once(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = put_events(store, tenant, 3)
    assert claim(store, tenant) == events
    keep_listing(store, monkeypatch, tenant)
    store.events.replay_all(tenant, Selection(), 500, NOW)
    for _ in range(MAX_DELIVERIES):
        leased = poll(store, tenant, lease_until_ms=LEASE_UNTIL)
        assert all(store.events.release(tenant, [receipt(event) for event in leased], NOW, NOW, failed=True))

    # Listed as delivered and as dead.
    replayed = store.events.replay_all(tenant, Selection(), 500, NOW).count
    monkeypatch.undo()
    replayed += store.events.replay_all(tenant, Selection(), 500, NOW).count
    assert replayed == len(events)
    assert claim(store, tenant) == events


@pytest.mark.parametrize("count", [60, 130])
def test_copies_that_the_index_lists_twice_are_deleted(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    store.inboxes.save(tenant, Inbox("crm", None, NOW))
    put_events(store, tenant, count)
    keep_listing(store, monkeypatch, make_index_partition(tenant, "crm"))
    assert len(claim(store, tenant, inbox="crm")) == count

    store.inboxes.close(tenant, "crm")
    assert store.inboxes.delete_copies(tenant, "crm", 500) == count
    assert store.inboxes.all(tenant) == []
    assert store.events.page(tenant, Selection("crm"), Order.OLDEST, EVERYTHING, None, NOW).events == []
