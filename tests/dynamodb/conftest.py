"""A DynamoDB store on DynamoDB Local or moto, and functions that shorten its calls."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, Event, NewEvent, PageSize
from inbox.domain.keys import ApiKey, KeyStatus, Scope
from inbox.domain.stats import Counts, Span
from inbox.domain.tenants import AuditAction, AuditEntry, Change
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import EVENTS, TENANTS
from inbox.store.interface import Store
from tests.contract.samples import ids
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness
from tests.engines.wire import Wire

# Milliseconds, in the future because DynamoDB Local deletes expired items by its own clock.
NOW = 4_102_444_800_123
LATER_S = NOW // 1000 + 3600
TODAY = Span.DAY.start_ms(NOW)
LEASE_UNTIL = NOW + 60_000
PAGE_BYTES = 1_000_000
EVERYTHING = PageSize(500, PAGE_BYTES)
BOTOCORE_ATTEMPTS = 3


@pytest.fixture(autouse=True)
def long_claim_timeout() -> Iterator[None]:
    """Raises the time limits of claims for slow machines. Tests of a limit set their own."""
    # Not the fixture `monkeypatch`, because some tests undo its patches.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inbox.store.dynamodb.connection.MAX_SECONDS", 120)
        yield


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    name: str = getattr(request, "param", "dynamodb_local")
    return name


# On moto the store claims each event with a separate update: see tests/engines/moto_server.py.
both_ways_to_claim = pytest.mark.parametrize("engine", ["moto", "dynamodb_local"], indirect=True)


@pytest.fixture
def harness(request: pytest.FixtureRequest, engine: str) -> Iterator[DynamoDBHarness]:
    request.getfixturevalue(f"on_{engine}")
    harness = DynamoDBHarness()
    yield harness
    # Tests here only read their own tenant, but some tests of the contract read all tenants.
    for table in (EVENTS, TENANTS):
        harness.empty(table)


@pytest.fixture
def connection(harness: DynamoDBHarness) -> Connection:
    return harness.connection


@pytest.fixture
def store(request: pytest.FixtureRequest, harness: DynamoDBHarness) -> Iterator[DynamoDBStore]:
    """A store without any cached state, as in a new process."""
    # A wire changes its connection permanently, and creating another one takes longer than most tests.
    is_wired = "wire" in request.fixturenames
    store = DynamoDBStore(Connection(harness.prefix, 16) if is_wired else harness.connection, MAX_DELIVERIES)
    yield store
    store.close()


@pytest.fixture
def other_store(harness: DynamoDBHarness) -> DynamoDBStore:
    """The store in another process. The wire does not affect it."""
    return DynamoDBStore(harness.connection, MAX_DELIVERIES)


@pytest.fixture
def third_store(harness: DynamoDBHarness) -> DynamoDBStore:
    return DynamoDBStore(harness.connection, MAX_DELIVERIES)


@pytest.fixture
def uncached_store(harness: DynamoDBHarness) -> DynamoDBStore:
    """A store that does not cache inboxes, so that changing them takes no time."""
    return DynamoDBStore(harness.connection, MAX_DELIVERIES, 0)


@pytest.fixture
def empty_connection(harness: DynamoDBHarness) -> Iterator[Connection]:
    """A connection with a prefix that has no tables."""
    other = Connection(f"{harness.prefix}elsewhere-", 1)
    yield other
    for name in list_tables(other):
        other.call("delete_table", TableName=name)
    other.close()


@pytest.fixture
def wire(store: DynamoDBStore) -> Wire:
    return Wire(store._connection)


@pytest.fixture
def tenant() -> str:
    return f"tenant-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)


def list_tables(connection: Connection) -> list[str]:
    names: list[str] = connection.call("list_tables")["TableNames"]
    return [name for name in names if name.startswith(connection.table(""))]


def audit_entry(number: int = 1) -> AuditEntry:
    action = AuditAction.CREATED if number == 1 else AuditAction.UPDATED
    return AuditEntry(number, NOW + number, "cli", action, {"rate_limit": Change(None, number)})


def api_key(tenant: str, name: str = "", expires_at_ms: int | None = None) -> ApiKey:
    key_hash = uuid.uuid4().hex * 2
    scopes = frozenset({Scope.INBOX_READ})
    return ApiKey(f"key_{key_hash[:8]}", key_hash, tenant, name, scopes, KeyStatus.ACTIVE, NOW, expires_at_ms)


def new_event(payload: bytes = b'{"order":1001}', event_type: str | None = "order.created") -> NewEvent:
    return NewEvent(str(uuid.uuid4()), event_type, payload)


def keyed_event(payload: bytes = b'{"order":1001}', fingerprint: bytes = b"first") -> NewEvent:
    return NewEvent(str(uuid.uuid4()), "order.created", payload, fingerprint)


def put_events(store: Store, tenant: str, count: int) -> list[str]:
    events = [new_event() for _ in range(count)]
    store.events.put(tenant, events, NOW, LATER_S)
    return ids(events)


def poll(
    store: Store,
    tenant: str,
    limit: int = 500,
    *,
    inbox: str = DEFAULT_INBOX,
    now_ms: int = NOW,
    lease_until_ms: int | None = None,
    attempt: str | None = None,
) -> list[Event]:
    """Returns the claimed events."""
    size = PageSize(limit, PAGE_BYTES)
    return store.events.claim(tenant, inbox, size, now_ms, lease_until_ms=lease_until_ms, attempt=attempt).events


def claim(store: Store, tenant: str, limit: int = 500, **options: Any) -> list[str]:
    """Returns the IDs of the claimed events."""
    return ids(poll(store, tenant, limit, **options))


def claim_with_attempt(store: Store, tenant: str, limit: int) -> list[str]:
    return claim(store, tenant, limit, attempt="attempt-1")


Claim = Callable[[Store, str, int], list[str]]

both_claims = pytest.mark.parametrize("claim_in", [claim, claim_with_attempt], ids=["plain", "repeatable"])


def warm_up(store: DynamoDBStore, tenant: str) -> str:
    """Makes the store probe if the engine's statements are conditional. Returns the ID of a delivered event."""
    (event_id,) = put_events(store, tenant, 1)
    assert claim(store, tenant) == [event_id]
    store.events._shards._cache.clear()
    return event_id


def total_counts(store: DynamoDBStore, tenant: str, span: Span = Span.DAY) -> Counts:
    total = Counts()
    for counted in store.counters.list_counts(tenant, DEFAULT_INBOX, span, 0):
        total = total.plus(counted.counts)
    return total
