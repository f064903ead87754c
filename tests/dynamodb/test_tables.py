"""The tables that `inbox init` makes."""

from collections.abc import Iterator
from typing import Any

import pytest

from inbox.errors import SettingsError, StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.tables import DEFINITIONS
from tests.dynamodb.conftest import LATER, NOW, fresh
from tests.engines.harnesses import DynamoDBHarness


@pytest.fixture
def connection(harness: DynamoDBHarness) -> Connection:
    return harness.connection


def described(connection: Connection, name: str) -> dict[str, Any]:
    table: dict[str, Any] = connection.call("describe_table", TableName=connection.table(name))["Table"]
    return table


def schema(keys: list[dict[str, str]]) -> list[str]:
    return [key["AttributeName"] for key in sorted(keys, key=lambda key: key["KeyType"])]


def test_they_are_those_of_the_contract(connection: Connection) -> None:
    keys = {name: schema(described(connection, name)["KeySchema"]) for name in DEFINITIONS}
    assert keys == {"Events": ["pk", "sk"], "TenantApiKeys": ["pk", "sk"], "Tenants": ["PK", "SK"]}
    indexes = described(connection, "Events")["GlobalSecondaryIndexes"]
    assert {index["IndexName"]: schema(index["KeySchema"]) for index in indexes} == {
        "status-index": ["gsi1pk", "gsi1sk"],
        "event-type-index": ["gsi2pk", "gsi2sk"],
    }
    for name in DEFINITIONS:
        assert described(connection, name)["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"


def test_expired_items_are_deleted_by_dynamodb_too(connection: Connection) -> None:
    for name in DEFINITIONS:
        answer = connection.call("describe_time_to_live", TableName=connection.table(name))
        assert answer["TimeToLiveDescription"] == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}


@pytest.mark.parametrize("engine", ["moto"], indirect=True)
def test_they_can_be_restored_to_any_point_in_time(connection: Connection) -> None:
    for name in DEFINITIONS:
        answer = connection.call("describe_continuous_backups", TableName=connection.table(name))
        recovery = answer["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
        assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"


def test_making_them_again_changes_nothing(store: DynamoDBStore, tenant: str) -> None:
    event = fresh()
    store.events.put(tenant, [event], NOW, LATER)
    store.init()
    assert store.events.get(tenant, event.event_id, NOW) is not None


@pytest.fixture
def foreign(harness: DynamoDBHarness) -> Iterator[Connection]:
    """A prefix under which somebody else has a table of the same name."""
    other = Connection(f"{harness.prefix}foreign-", 1)
    other.call("create_table", TableName=other.table("Events"), **DEFINITIONS["TenantApiKeys"])
    yield other
    for name in other.call("list_tables")["TableNames"]:
        if name.startswith(other.table("")):
            other.call("delete_table", TableName=name)
    other.close()


def test_a_foreign_table_is_refused(foreign: Connection) -> None:
    with pytest.raises(SettingsError, match="Events is there already, with other keys or indexes"):
        DynamoDBStore(foreign).init()


def test_a_missing_table_is_an_outage_that_says_what_to_do(harness: DynamoDBHarness) -> None:
    with pytest.raises(StoreUnavailable, match="inbox init"):
        DynamoDBStore(Connection(f"{harness.prefix}none-", 1)).check()
