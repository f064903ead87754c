"""The tables, as `inbox init` creates them. A test compares the deploy templates with these definitions."""

import time
from typing import Any

from inbox.errors import SettingsError, StoreUnavailable
from inbox.store.dynamodb.connection import AWS_ERRORS, Connection, error_code, translate_error
from inbox.store.dynamodb.layout import (
    ACTIVE_INDEX,
    EMAIL_INDEX,
    EVENT_TYPE_INDEX,
    EVENTS,
    STATUS_INDEX,
    TENANT_API_KEYS,
    TENANT_STATUS_INDEX,
    TENANTS,
)

TTL_ATTRIBUTE = "ttl"
RECOVERY_DAYS = 35

_WAIT = {"Delay": 1, "MaxAttempts": 180}


def _keys(partition: str, sort: str | None = None) -> list[dict[str, str]]:
    keys = [{"AttributeName": partition, "KeyType": "HASH"}]
    return keys if sort is None else [*keys, {"AttributeName": sort, "KeyType": "RANGE"}]


def _strings(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


DEFINITIONS: dict[str, dict[str, Any]] = {
    EVENTS: {
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _keys("pk", "sk"),
        "AttributeDefinitions": _strings("pk", "sk", "gsi1pk", "gsi1sk", "gsi2pk", "gsi2sk"),
        "GlobalSecondaryIndexes": [
            {
                "IndexName": STATUS_INDEX,
                "KeySchema": _keys("gsi1pk", "gsi1sk"),
                # A poll chooses events by these. A claim's update returns the rest, so no payload is paid for twice.
                "Projection": {
                    "ProjectionType": "INCLUDE",
                    "NonKeyAttributes": ["deliveries", "event_type", "lost_leases", "payload_bytes", TTL_ATTRIBUTE],
                },
            },
            {
                "IndexName": EVENT_TYPE_INDEX,
                "KeySchema": _keys("gsi2pk", "gsi2sk"),
                # Nothing that changes, so that a delivery costs no write here.
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            },
        ],
    },
    TENANT_API_KEYS: {
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _keys("pk", "sk"),
        "AttributeDefinitions": _strings("pk", "sk"),
    },
    TENANTS: {
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _keys("PK", "SK"),
        "AttributeDefinitions": _strings("PK", "SK", "email", "status", "active", "date_created"),
        # Tenants are small and rarely change, so that lists are read from the index alone.
        "GlobalSecondaryIndexes": [
            {"IndexName": name, "KeySchema": keys, "Projection": {"ProjectionType": "ALL"}}
            for name, keys in (
                (EMAIL_INDEX, _keys("email")),
                (TENANT_STATUS_INDEX, _keys("status", "date_created")),
                (ACTIVE_INDEX, _keys("active", "date_created")),
            )
        ],
    },
}


def create_tables(connection: Connection) -> None:
    """Creates missing tables and configures all of them. Safe to repeat."""
    # Checks all tables first: it raises an error if one of them belongs to another program.
    missing = [name for name in DEFINITIONS if not _exists(connection, name)]
    for name in missing:
        _create(connection, name)
    for name in DEFINITIONS:
        _wait_until_active(connection, connection.table(name))
        _enable_ttl(connection, connection.table(name))
    for name in DEFINITIONS:
        _enable_recovery(connection, connection.table(name))


def _exists(connection: Connection, name: str) -> bool:
    table = connection.table(name)
    try:
        described = connection.client.describe_table(TableName=table)["Table"]
    except AWS_ERRORS as error:
        if error_code(error) == "ResourceNotFoundException":
            return False
        raise translate_error(error) from error
    if not _matches(described, DEFINITIONS[name]):
        raise SettingsError(f"The table {table} already exists with other keys or indexes.")
    return True


def _create(connection: Connection, name: str) -> None:
    try:
        connection.client.create_table(TableName=connection.table(name), **DEFINITIONS[name])
    except AWS_ERRORS as error:
        # Another process created it, or botocore repeated our own call after a lost response.
        if error_code(error) != "ResourceInUseException":
            raise translate_error(error) from error


def _matches(described: dict[str, Any], definition: dict[str, Any]) -> bool:
    types = {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}
    indexes = {index["IndexName"]: index for index in described.get("GlobalSecondaryIndexes", [])}
    return (
        described["KeySchema"] == definition["KeySchema"]
        and all(types.get(each["AttributeName"]) == "S" for each in definition["AttributeDefinitions"])
        and all(
            index["IndexName"] in indexes
            and indexes[index["IndexName"]]["KeySchema"] == index["KeySchema"]
            and _includes(indexes[index["IndexName"]]["Projection"], index["Projection"])
            for index in definition.get("GlobalSecondaryIndexes", [])
        )
    )


def _includes(existing: dict[str, Any], needed: dict[str, Any]) -> bool:
    if "ALL" in (existing["ProjectionType"], needed["ProjectionType"]):
        return bool(existing["ProjectionType"] == "ALL")
    return set(needed.get("NonKeyAttributes", [])) <= set(existing.get("NonKeyAttributes", []))


def _wait_until_active(connection: Connection, table: str) -> None:
    try:
        connection.client.get_waiter("table_exists").wait(TableName=table, WaiterConfig=_WAIT)
    except AWS_ERRORS as error:
        raise StoreUnavailable(f"The table {table} did not become active.") from error


def _enable_ttl(connection: Connection, table: str) -> None:
    ttl = connection.call("describe_time_to_live", TableName=table)["TimeToLiveDescription"]
    if ttl["TimeToLiveStatus"] in ("DISABLED", "DISABLING"):
        specification = {"Enabled": True, "AttributeName": TTL_ATTRIBUTE}
        connection.call("update_time_to_live", TableName=table, TimeToLiveSpecification=specification)
    elif ttl["AttributeName"] != TTL_ATTRIBUTE:
        raise SettingsError(f"The table {table} expires items by {ttl['AttributeName']}, not by {TTL_ATTRIBUTE}.")


def _enable_recovery(connection: Connection, table: str) -> None:
    specification = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": RECOVERY_DAYS}
    for _ in range(_WAIT["MaxAttempts"]):
        try:
            connection.call(
                "update_continuous_backups", TableName=table, PointInTimeRecoverySpecification=specification
            )
            return
        except AWS_ERRORS as error:
            # DynamoDB Local has no backups.
            if error_code(error) == "UnknownOperationException":
                return
            # A table that was just created is not ready for backups at once.
            if error_code(error) != "ContinuousBackupsUnavailableException":
                raise
            time.sleep(_WAIT["Delay"])
    raise StoreUnavailable(f"Point-in-time recovery could not be enabled for {table}. Run `inbox init` again.")
