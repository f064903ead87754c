"""Fixtures for what only the DynamoDB store promises. Tests run on DynamoDB Local unless they say otherwise."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from inbox.domain.events import DEFAULT_INBOX, NewEvent, PageSize
from inbox.domain.keys import ApiKey, KeyStatus, Scope
from inbox.domain.tenants import AuditAction, AuditEntry, Change
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import EVENTS, TENANTS
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness
from tests.engines.wire import Wire

# Far ahead: DynamoDB Local deletes what has expired by its own clock, and these tests have theirs.
NOW = 4_102_444_800_123
LATER = NOW // 1000 + 3600
ANY_SIZE = 1_000_000
# How often botocore tries before an error gets to the store.
ALL_ATTEMPTS = 3


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    name: str = getattr(request, "param", "dynamodb_local")
    return name


# On moto the store claims each event by an update of its own: see tests/engines/moto_server.py.
both_ways_to_claim = pytest.mark.parametrize("engine", ["moto", "dynamodb_local"], indirect=True)


@pytest.fixture
def harness(request: pytest.FixtureRequest, engine: str) -> Iterator[DynamoDBHarness]:
    request.getfixturevalue(f"on_{engine}")
    harness = DynamoDBHarness()
    yield harness
    # Each test has its own tenant here, but some tests of the contract look at all tenants.
    for table in (EVENTS, TENANTS):
        harness.empty(table)


@pytest.fixture
def store(request: pytest.FixtureRequest, harness: DynamoDBHarness) -> Iterator[DynamoDBStore]:
    """As in a process of its own: it remembers nothing of earlier tests."""
    # What a wire does to a connection stays, and a new one takes longer than most tests.
    is_wired = "wire" in request.fixturenames
    store = DynamoDBStore(Connection(harness.prefix, 16) if is_wired else harness.connection, MAX_DELIVERIES)
    yield store
    store.close()


@pytest.fixture
def other_store(harness: DynamoDBHarness) -> DynamoDBStore:
    """As in another process: what happens on its way is its own."""
    return DynamoDBStore(harness.connection, MAX_DELIVERIES)


@pytest.fixture
def third_store(harness: DynamoDBHarness) -> DynamoDBStore:
    return DynamoDBStore(harness.connection, MAX_DELIVERIES)


@pytest.fixture
def wire(store: DynamoDBStore) -> Wire:
    return Wire(store._connection)


@pytest.fixture
def tenant() -> str:
    return f"tenant-{uuid.uuid4().hex[:8]}"


def entry(number: int = 1) -> AuditEntry:
    action = AuditAction.CREATED if number == 1 else AuditAction.UPDATED
    return AuditEntry(number, NOW + number, "cli", action, {"rate_limit": Change(None, number)})


def key_of(tenant: str, name: str = "", expires_at_ms: int | None = None) -> ApiKey:
    key_hash = uuid.uuid4().hex * 2
    scopes = frozenset({Scope.INBOX_READ})
    return ApiKey(f"key_{key_hash[:8]}", key_hash, tenant, name, scopes, KeyStatus.ACTIVE, NOW, expires_at_ms)


def fresh(payload: bytes = b'{"order":1001}', event_type: str | None = "order.created") -> NewEvent:
    return NewEvent(str(uuid.uuid4()), event_type, payload)


def keyed(payload: bytes = b'{"order":1001}', fingerprint: bytes = b"first") -> NewEvent:
    return NewEvent(str(uuid.uuid4()), "order.created", payload, fingerprint)


def filled(store: DynamoDBStore, tenant: str, count: int) -> list[str]:
    events = [fresh() for _ in range(count)]
    store.events.put(tenant, events, NOW, LATER)
    return [event.event_id for event in events]


def claim(store: DynamoDBStore, tenant: str, most: int = 500, now_ms: int = NOW) -> list[str]:
    return [
        event.event_id for event in store.events.claim(tenant, DEFAULT_INBOX, PageSize(most, ANY_SIZE), now_ms).events
    ]


def repeatable_claim(store: DynamoDBStore, tenant: str, most: int) -> list[str]:
    page = store.events.claim(tenant, DEFAULT_INBOX, PageSize(most, ANY_SIZE), NOW, attempt="attempt-1")
    return [event.event_id for event in page.events]


Claim = Callable[[DynamoDBStore, str, int], list[str]]

each_claim = pytest.mark.parametrize("claim_in", [claim, repeatable_claim], ids=["plain", "repeatable"])


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)


def have_polled_before(store: DynamoDBStore, tenant: str) -> str:
    """So that the store knows whether this engine's statements keep their conditions."""
    event = fresh()
    store.events.put(tenant, [event], NOW, LATER)
    assert claim(store, tenant) == [event.event_id]
    store.events._shards._cache.clear()
    return event.event_id
