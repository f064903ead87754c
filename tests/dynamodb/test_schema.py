"""The schema version of the tables."""

import threading

import pytest

from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore, schema
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import SCHEMA_KEY, number
from inbox.store.dynamodb.schema import SCHEMA_VERSION, SchemaVersion
from inbox.store.dynamodb.tables import DEFINITIONS
from tests.engines.harnesses import MAX_DELIVERIES
from tests.engines.wire import Fault, Wire


@pytest.fixture
def connection(empty_connection: Connection) -> Connection:
    """A connection to a table `Tenants` without a schema version, as release 0.1.0 creates it."""
    empty_connection.call("create_table", TableName=empty_connection.table("Tenants"), **DEFINITIONS["Tenants"])
    return empty_connection


@pytest.fixture
def version(connection: Connection) -> SchemaVersion:
    return SchemaVersion(connection)


@pytest.fixture
def reads(connection: Connection) -> Wire:
    return Wire(connection)


class SteadyClock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1_000.0
        monkeypatch.setattr(schema, "monotonic", lambda: self.seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SteadyClock:
    return SteadyClock(monkeypatch)


def store_version(connection: Connection, version: int) -> None:
    item = {**SCHEMA_KEY, "version": number(version)}
    connection.call("put_item", TableName=connection.table("Tenants"), Item=item)


def test_tables_without_a_version_have_version_1(version: SchemaVersion) -> None:
    assert version.get() == 1


def test_init_writes_the_version_of_the_release(empty_connection: Connection) -> None:
    store = DynamoDBStore(empty_connection, MAX_DELIVERIES)
    store.init()
    assert store.schema.get() == SCHEMA_VERSION == 2


def test_written_version_is_read_at_once(version: SchemaVersion) -> None:
    assert version.get() == 1
    version.write(2)
    assert version.get() == 2


def test_version_of_another_process_is_read_within_a_minute(
    connection: Connection, version: SchemaVersion, reads: Wire, clock: SteadyClock
) -> None:
    assert version.get() == 1
    SchemaVersion(connection).write(2)
    clock.seconds += 59
    assert version.get() == 1
    assert reads.calls["GetItem"] == 1
    clock.seconds += 1
    assert version.get() == 2


def test_version_of_the_release_is_read_once(version: SchemaVersion, reads: Wire, clock: SteadyClock) -> None:
    version.write(2)
    assert version.get() == 2
    clock.seconds += 1_000_000
    assert version.get() == 2
    assert reads.calls["GetItem"] == 1


def test_version_is_never_lowered(connection: Connection, version: SchemaVersion) -> None:
    version.write(2)
    version.write(1)
    assert SchemaVersion(connection).get() == 2


def test_slow_read_of_the_previous_version_does_not_replace_the_current_one(
    connection: Connection, version: SchemaVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_read, may_return = threading.Event(), threading.Event()
    read = SchemaVersion._read

    def read_slowly(self: SchemaVersion) -> int:
        found = read(self)
        has_read.set()
        assert may_return.wait(30)
        return found

    monkeypatch.setattr(SchemaVersion, "_read", read_slowly)
    slow = threading.Thread(target=version.get)
    slow.start()
    assert has_read.wait(30)
    monkeypatch.undo()
    SchemaVersion(connection).write(2)
    assert version.get() == 2
    may_return.set()
    slow.join()
    assert version.get() == 2


@pytest.mark.parametrize("stored", [0, 3])
def test_unsupported_version_is_refused(connection: Connection, version: SchemaVersion, stored: int) -> None:
    store_version(connection, stored)
    message = (
        rf"^The DynamoDB tables have schema version {stored}; this release supports 1 and 2\."
        r" Run the release that upgraded the tables, or check INBOX_TABLE_PREFIX\.$"
    )
    with pytest.raises(StoreUnavailable, match=message):
        version.get()


def test_refused_version_is_read_again(connection: Connection, version: SchemaVersion) -> None:
    store_version(connection, 3)
    with pytest.raises(StoreUnavailable):
        version.get()
    store_version(connection, 2)
    assert version.get() == 2


def test_failed_read_is_repeated_by_the_next_call(version: SchemaVersion, reads: Wire) -> None:
    reads.fail("GetItem", Fault.SERVER_ERROR, times=3)
    with pytest.raises(StoreUnavailable):
        version.get()
    assert version.get() == 1


def test_tables_of_a_newer_release_are_not_ready(empty_connection: Connection) -> None:
    DynamoDBStore(empty_connection, MAX_DELIVERIES).init()
    store_version(empty_connection, 3)
    with pytest.raises(StoreUnavailable, match="schema version 3"):
        DynamoDBStore(empty_connection, MAX_DELIVERIES).check()
