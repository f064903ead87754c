"""Imports and exports of DynamoDB's own: shards, items of other kinds, and events that do not fit."""

import secrets
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from inbox.domain.events import NewEvent
from inbox.domain.inboxes import Inbox
from inbox.errors import StoreUnavailable
from inbox.services.store_copy import CopyResult, StoreCopy
from inbox.store.dynamodb import DynamoDBStore, layout
from inbox.store.dynamodb.layout import EVENTS, text
from inbox.store.dynamodb.shards import NOTICE_MS
from inbox.store.sqlite import SQLiteStore
from tests.contract.samples import ids
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import BOTOCORE_ATTEMPTS, LATER_S, NOW, audit_entry, claim, keyed_event, new_event
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness
from tests.engines.wire import Fault, Wire

SHARDED = NOW + NOTICE_MS


@pytest.fixture
def embedded(tmp_path: Path, tenant: str) -> Iterator[SQLiteStore]:
    embedded = SQLiteStore(tmp_path / "inbox.db", MAX_DELIVERIES)
    embedded.tenants.create(named(tenant), [audit_entry()])
    yield embedded
    embedded.close()


@pytest.fixture
def sharded_store(harness: DynamoDBHarness, tenant: str) -> DynamoDBStore:
    store = DynamoDBStore(harness.connection, MAX_DELIVERIES, 0)
    store.tenants.create(named(tenant), [audit_entry()])
    store.tenants.shard(tenant, 4, NOW)
    return store


def copy(source: SQLiteStore | DynamoDBStore, target: SQLiteStore | DynamoDBStore) -> CopyResult:
    return StoreCopy(source, target, lambda: SHARDED).copy(lambda _done, _total: None)


def test_events_that_are_too_large_are_reported_and_the_rest_copied(
    embedded: SQLiteStore, store: DynamoDBStore, tenant: str
) -> None:
    huge = NewEvent(str(uuid.uuid4()), None, b'{"noise":"' + secrets.token_hex(500_000).encode() + b'"}')
    small = new_event()
    embedded.events.put(tenant, [huge, small], NOW, LATER_S)

    result = copy(embedded, store)
    assert (result.written, result.too_large) == (1, [huge.event_id])
    assert claim(store, tenant) == [small.event_id]


def test_events_of_all_shards_are_exported_in_order(
    sharded_store: DynamoDBStore, embedded: SQLiteStore, tenant: str
) -> None:
    events = [keyed_event() if number % 5 == 0 else new_event() for number in range(120)]
    for part, now_ms in ((events[:50], NOW), (events[50:], SHARDED)):
        sharded_store.events.put(tenant, part, now_ms, LATER_S)

    assert copy(sharded_store, embedded).events == 120
    assert claim(embedded, tenant, now_ms=SHARDED) == ids(events)


@pytest.mark.parametrize("name", ["", "=part"])
def test_items_that_are_no_events_are_not_exported(
    store: DynamoDBStore, embedded: SQLiteStore, harness: DynamoDBHarness, tenant: str, name: str
) -> None:
    store.tenants.create(named(tenant), [audit_entry()])
    event = new_event()
    store.events.put(tenant, [event], NOW, LATER_S)
    part = layout.event_key(tenant, event.event_id, name) | {"ttl": layout.number(LATER_S), "data": text("…")}
    harness.connection.call("put_item", TableName=harness.connection.table(EVENTS), Item=part)

    assert copy(store, embedded).events == 1


def test_copy_of_an_event_with_an_idempotency_key_stays_in_its_partition(
    sharded_store: DynamoDBStore, harness: DynamoDBHarness, tenant: str
) -> None:
    """Exported from DynamoDB, where only the event itself has the fingerprint."""
    sharded_store.inboxes.save(tenant, Inbox("crm", None, NOW))
    event = keyed_event()
    sharded_store.events.put(tenant, [event], SHARDED, LATER_S)
    records = list(sharded_store.events.export_events(tenant, SHARDED).events)
    assert [record.fingerprint for record in records] == [event.fingerprint] * 2

    sharded_store.events.erase(tenant, event.event_id, SHARDED)
    sharded_store.events.import_events(tenant, records, SHARDED)
    shards = sharded_store.events._shards.get(tenant)
    keys = [key for inbox in ("default", "crm") for key in shards.keys(event.event_id, inbox)]
    found = [item["pk"]["S"] for item in harness.connection.get_many(EVENTS, keys)]
    assert found == [f"{tenant}##k{uuid.UUID(event.event_id).int % 16}"] * 2


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("written", [1, 2])
def test_copies_that_a_process_did_not_write_before_it_ended_are_exported(
    store: DynamoDBStore, uncached_store: DynamoDBStore, embedded: SQLiteStore, wire: Wire, tenant: str, written: int
) -> None:
    uncached_store.tenants.create(named(tenant), [audit_entry()])
    for name in ("billing", "shipping"):
        uncached_store.inboxes.save(tenant, Inbox(name, None, NOW))
    event = keyed_event()
    wire.fail("PutItem", Fault.TIMEOUT_BEFORE, 2 * BOTOCORE_ATTEMPTS, after=written)
    with pytest.raises(StoreUnavailable):
        store.events.put(tenant, [event], NOW, LATER_S)

    assert copy(uncached_store, embedded).written == 3
    assert embedded.events.put(tenant, [event], NOW, LATER_S)[0].repeated
    assert [claim(embedded, tenant, inbox=name) for name in ("default", "billing", "shipping")] == [
        [event.event_id]
    ] * 3
