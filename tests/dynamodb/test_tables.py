"""The tables that `inbox init` creates."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from inbox.domain.events import DEFAULT_INBOX
from inbox.errors import SettingsError, StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.tables import DEFINITIONS, _enable_recovery, create_tables
from tests.dynamodb.conftest import LATER_S, NOW, list_tables, new_event
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness


@pytest.fixture
def connection(harness: DynamoDBHarness) -> Connection:
    return harness.connection


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


def with_one_index(definition: dict[str, Any]) -> dict[str, Any]:
    return {**definition, "GlobalSecondaryIndexes": definition["GlobalSecondaryIndexes"][:1]}


def with_keys_only_projection(definition: dict[str, Any]) -> dict[str, Any]:
    first, *others = definition["GlobalSecondaryIndexes"]
    return {**definition, "GlobalSecondaryIndexes": [{**first, "Projection": {"ProjectionType": "KEYS_ONLY"}}, *others]}


def with_numeric_sort_key(definition: dict[str, Any]) -> dict[str, Any]:
    attributes = [
        {**each, "AttributeType": "N"} if each["AttributeName"].lower() == "sk" else each
        for each in definition["AttributeDefinitions"]
    ]
    return {**definition, "AttributeDefinitions": attributes}


@pytest.mark.parametrize("name", ["Events", "Tenants"])
@pytest.mark.parametrize(
    "change", [with_one_index, with_keys_only_projection, with_numeric_sort_key, lambda _: DEFINITIONS["TenantApiKeys"]]
)
def test_table_with_other_keys_or_indexes_is_refused_before_any_is_created(
    empty_connection: Connection, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    definition = change(DEFINITIONS[name])
    used = {
        key["AttributeName"]
        for each in (definition, *definition.get("GlobalSecondaryIndexes", []))
        for key in each["KeySchema"]
    }
    attributes = [each for each in definition["AttributeDefinitions"] if each["AttributeName"] in used]
    empty_connection.call(
        "create_table", TableName=empty_connection.table(name), **definition | {"AttributeDefinitions": attributes}
    )

    with pytest.raises(SettingsError, match=f"{name} already exists with other keys or indexes"):
        DynamoDBStore(empty_connection, MAX_DELIVERIES).init()
    assert list_tables(empty_connection) == [empty_connection.table(name)]


def test_tables_created_by_another_process_at_the_same_time_are_used(
    empty_connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_tables(empty_connection)
    created = list_tables(empty_connection)
    monkeypatch.setattr("inbox.store.dynamodb.tables._exists", lambda *_: False)
    create_tables(empty_connection)
    assert list_tables(empty_connection) == created


def test_table_with_another_ttl_attribute_is_refused(empty_connection: Connection) -> None:
    empty_connection.call("create_table", TableName=empty_connection.table("Tenants"), **DEFINITIONS["Tenants"])
    empty_connection.call(
        "update_time_to_live",
        TableName=empty_connection.table("Tenants"),
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "other"},
    )
    with pytest.raises(SettingsError, match="expires items by other"):
        DynamoDBStore(empty_connection, MAX_DELIVERIES).init()


def test_recovery_is_enabled_once_the_table_is_ready(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    not_ready = ClientError(
        {"Error": {"Code": "ContinuousBackupsUnavailableException"}, "ResponseMetadata": {"HTTPStatusCode": 400}}, ""
    )
    errors = [not_ready, not_ready, None]

    def update(**_: Any) -> dict[str, Any]:
        error = errors.pop(0)
        if error is not None:
            raise error
        return {}

    monkeypatch.setattr(connection.client, "update_continuous_backups", update)
    _enable_recovery(connection, connection.table("Events"))
    assert errors == []


def test_message_for_a_missing_table_says_what_to_check(harness: DynamoDBHarness) -> None:
    with pytest.raises(
        StoreUnavailable,
        match=r"^A table is missing in DynamoDB\. Check AWS_REGION and INBOX_TABLE_PREFIX, or run `inbox init`\.$",
    ):
        DynamoDBStore(Connection(f"{harness.prefix}none-", 1), MAX_DELIVERIES).check()
