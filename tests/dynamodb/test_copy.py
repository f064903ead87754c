"""Moving over from the embedded store: everything arrives, once, in order, however often it is copied."""

import secrets
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inbox.events import NewEvent, PageSize
from inbox.moving import Copied, Move
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.sqlite import SQLiteStore
from inbox.tenants import ApiKey, KeyStatus, Scope, Tenant, TenantStatus
from tests.dynamodb.conftest import ANY_SIZE, LATER, NOW, claim, fresh, keyed

pytestmark = pytest.mark.parametrize("engine", ["dynamodb_local"], indirect=True)


@pytest.fixture
def source(tmp_path: Path, tenant: str) -> Iterator[SQLiteStore]:
    source = SQLiteStore(tmp_path / "inbox.db")
    source.tenants.create(Tenant(tenant, "Acme", "ops@acme.example", TenantStatus.ACTIVE, NOW))
    yield source
    source.close()


@pytest.fixture
def move(source: SQLiteStore, store: DynamoDBStore) -> Move:
    return Move(source, store, lambda: NOW)


def copied(move: Move) -> Copied:
    done: list[int] = []
    total = move.count()
    copied = move.copy(done.append)
    assert sum(done) == total == copied.events
    return copied


def key_of(tenant: str, name: str) -> ApiKey:
    key_hash = uuid.uuid4().hex * 2
    scopes = frozenset({Scope.INBOX_READ})
    return ApiKey(f"key_{key_hash[:8]}", key_hash, tenant, name, scopes, KeyStatus.ACTIVE, NOW, NOW + 1)


def test_everything_arrives_as_it_was(source: SQLiteStore, store: DynamoDBStore, move: Move, tenant: str) -> None:
    keys = [key_of(tenant, "one"), key_of(tenant, "two")]
    for key in keys:
        source.keys.add(key)
    source.keys.revoke(keys[1].key_id)
    events = [fresh(b'{"n":%d.0}' % number, "a" if number % 2 else None) for number in range(250)]
    source.events.put(tenant, events, NOW, LATER)
    delivered = source.events.claim(tenant, PageSize(20, ANY_SIZE), NOW + 5).events

    assert copied(move) == Copied(tenants=1, keys=2, events=250, written=250)
    assert store.tenants.get(tenant) == source.tenants.get(tenant)
    assert set(store.keys.of_tenant(tenant)) == set(source.keys.of_tenant(tenant))
    assert store.keys.find(keys[0].key_hash) == source.keys.find(keys[0].key_hash)
    assert store.keys.find(keys[1].key_hash) is None
    for event in delivered[:3]:
        assert store.events.get(tenant, event.event_id, NOW) == event
    assert claim(store, tenant, 500) == [event.event_id for event in events[20:]]


def test_a_second_copy_brings_only_what_is_new(
    source: SQLiteStore, store: DynamoDBStore, move: Move, tenant: str
) -> None:
    first, second = [fresh() for _ in range(5)], [fresh() for _ in range(3)]
    source.events.put(tenant, first, NOW, LATER)
    copied(move)
    source.events.put(tenant, second, NOW, LATER)

    assert copied(move).written == 3
    assert copied(move).written == 0
    assert claim(store, tenant) == [event.event_id for event in (*first, *second)]


def test_what_was_delivered_meanwhile_is_not_delivered_again(
    source: SQLiteStore, store: DynamoDBStore, move: Move, tenant: str
) -> None:
    events = [fresh() for _ in range(6)]
    source.events.put(tenant, events, NOW, LATER)
    copied(move)
    # Two are polled from the old store, and one from the new.
    source.events.claim(tenant, PageSize(2, ANY_SIZE), NOW)
    copied(move)
    assert claim(store, tenant, 1) == [events[2].event_id]

    assert copied(move).written == 0
    assert claim(store, tenant) == [event.event_id for event in events[3:]]
    assert store.events.get(tenant, events[0].event_id, NOW) == source.events.get(tenant, events[0].event_id, NOW)


def test_what_was_touched_in_the_new_store_is_left_alone(
    source: SQLiteStore, store: DynamoDBStore, move: Move, tenant: str
) -> None:
    event = fresh()
    source.events.put(tenant, [event], NOW, LATER)
    copied(move)
    source.events.claim(tenant, PageSize(1, ANY_SIZE), NOW)
    store._connection.call(
        "update_item",
        TableName=store._connection.table("Events"),
        Key={"pk": {"S": tenant}, "sk": {"S": event.event_id}},
        UpdateExpression="SET claim_id = :claim_id",
        ExpressionAttributeValues={":claim_id": {"S": "somebody's"}},
    )

    assert copied(move).written == 0
    assert claim(store, tenant) == [event.event_id]


def test_a_key_that_was_revoked_meanwhile_is_revoked(
    source: SQLiteStore, store: DynamoDBStore, move: Move, tenant: str
) -> None:
    key = key_of(tenant, "zapier")
    source.keys.add(key)
    copied(move)
    source.keys.revoke(key.key_id)
    copied(move)

    assert store.keys.of_tenant(tenant) == [replace(key, status=KeyStatus.REVOKED)]


def test_an_idempotency_key_goes_on_standing_for_its_event(
    source: SQLiteStore, store: DynamoDBStore, move: Move, tenant: str
) -> None:
    event = keyed()
    source.events.put(tenant, [event], NOW, LATER)
    copied(move)

    assert store.events.put(tenant, [event], NOW, LATER)[0].replayed


def test_what_has_no_room_is_named_and_the_rest_arrives(
    source: SQLiteStore, store: DynamoDBStore, move: Move, tenant: str
) -> None:
    huge = NewEvent(str(uuid.uuid4()), None, b'{"noise":"' + secrets.token_hex(500_000).encode() + b'"}')
    small = fresh()
    source.events.put(tenant, [huge, small], NOW, LATER)

    result = copied(move)
    assert (result.written, result.too_large) == (1, [huge.event_id])
    assert claim(store, tenant) == [small.event_id]


def test_what_has_expired_stays_behind(source: SQLiteStore, store: DynamoDBStore, move: Move, tenant: str) -> None:
    source.events.put(tenant, [fresh()], NOW, NOW // 1000)

    assert copied(move).events == 0
    assert claim(store, tenant) == []
