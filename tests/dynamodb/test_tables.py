"""The tables that `inbox init` creates when there are none."""

from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.tables import DEFINITIONS
from tests.dynamodb.conftest import LATER_S, NOW, new_event
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness


def describe_table(connection: Connection, name: str) -> dict[str, Any]:
    table: dict[str, Any] = connection.call("describe_table", TableName=connection.table(name))["Table"]
    return table


def key_names(keys: list[dict[str, str]]) -> list[str]:
    return [key["AttributeName"] for key in sorted(keys, key=lambda key: key["KeyType"])]


def keys_by_index(connection: Connection, name: str) -> dict[str, list[str]]:
    indexes = describe_table(connection, name)["GlobalSecondaryIndexes"]
    return {index["IndexName"]: key_names(index["KeySchema"]) for index in indexes}


def test_tables_are_as_documented(connection: Connection) -> None:
    keys = {name: key_names(describe_table(connection, name)["KeySchema"]) for name in DEFINITIONS}
    assert keys == {"Events": ["pk", "sk"], "TenantApiKeys": ["pk", "sk"], "Tenants": ["PK", "SK"]}
    assert keys_by_index(connection, "Events") == {
        "status-index": ["gsi1pk", "gsi1sk"],
        "event-type-index": ["gsi2pk", "gsi2sk"],
    }
    assert keys_by_index(connection, "Tenants") == {
        "EmailIndex": ["email"],
        "TenantStatusIndex": ["status", "date_created"],
        "ActiveIndex": ["active", "date_created"],
    }
    for name in DEFINITIONS:
        assert describe_table(connection, name)["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"


def test_ttl_is_enabled_on_every_table(connection: Connection) -> None:
    for name in DEFINITIONS:
        response = connection.call("describe_time_to_live", TableName=connection.table(name))
        assert response["TimeToLiveDescription"] == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}


@pytest.mark.parametrize("engine", ["moto"], indirect=True)
def test_point_in_time_recovery_is_enabled_on_every_table(connection: Connection) -> None:
    for name in DEFINITIONS:
        response = connection.call("describe_continuous_backups", TableName=connection.table(name))
        recovery = response["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
        assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"


def test_init_is_repeatable(store: DynamoDBStore, tenant: str) -> None:
    event = new_event()
    store.events.put(tenant, [event], NOW, LATER_S)
    store.init()
    assert store.events.get(tenant, DEFAULT_INBOX, event.event_id, NOW) is not None


def test_message_for_a_missing_table_says_what_to_check(harness: DynamoDBHarness) -> None:
    with pytest.raises(
        StoreUnavailable,
        match=r"^A table is missing in DynamoDB\. Check AWS_REGION and INBOX_TABLE_PREFIX, or run `inbox init`\.$",
    ):
        DynamoDBStore(Connection(f"{harness.prefix}none-", 1), MAX_DELIVERIES).check()
