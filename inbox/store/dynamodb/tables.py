"""The tables, defined once: `inbox init` makes them, and the deploy templates are held against this."""

import time
from typing import Any

from inbox.errors import SettingsError, StoreUnavailable
from inbox.store.dynamodb.connection import ERRORS, Connection, code_of, translate_error
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
                # Just enough to choose by: the claim's own write brings the rest, so no payload is paid for twice.
                "Projection": {
                    "ProjectionType": "INCLUDE",
                    "NonKeyAttributes": ["deliveries", "event_type", "lost_leases", "payload_bytes", TTL_ATTRIBUTE],
                },
            },
            {
                "IndexName": EVENT_TYPE_INDEX,
                "KeySchema": _keys("gsi2pk", "gsi2sk"),
                # Nothing that changes, so a delivery costs no write here.
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
        # A tenant is small and seldom changes: whoever lists them has all of it from the index.
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


def make_tables(connection: Connection) -> None:
    """Makes those that are missing and sets up all of them; safe to repeat."""
    # Before anything is made: a table of somebody else's is a reason to stop.
    missing = [name for name in DEFINITIONS if not _is_there(connection, name)]
    for name in missing:
        _make(connection, name)
    for name in DEFINITIONS:
        _wait_until_there(connection, connection.table(name))
        _turn_expiry_on(connection, connection.table(name))
    for name in DEFINITIONS:
        _turn_recovery_on(connection, connection.table(name))


def _is_there(connection: Connection, name: str) -> bool:
    table = connection.table(name)
    try:
        described = connection.client.describe_table(TableName=table)["Table"]
    except ERRORS as error:
        if code_of(error) == "ResourceNotFoundException":
            return False
        raise translate_error(error) from error
    if not _has(described, DEFINITIONS[name]):
        raise SettingsError(f"The table {table} is there already, with other keys or indexes")
    return True


def _make(connection: Connection, name: str) -> None:
    try:
        connection.client.create_table(TableName=connection.table(name), **DEFINITIONS[name])
    except ERRORS as error:
        # Somebody else makes it too, or the answer got lost and botocore's retry has met our own.
        if code_of(error) != "ResourceInUseException":
            raise translate_error(error) from error


def _has(described: dict[str, Any], definition: dict[str, Any]) -> bool:
    types = {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}
    indexes = {index["IndexName"]: index for index in described.get("GlobalSecondaryIndexes", [])}
    return (
        described["KeySchema"] == definition["KeySchema"]
        and all(types.get(each["AttributeName"]) == "S" for each in definition["AttributeDefinitions"])
        and all(
            index["IndexName"] in indexes
            and indexes[index["IndexName"]]["KeySchema"] == index["KeySchema"]
            and _projects(indexes[index["IndexName"]]["Projection"], index["Projection"])
            for index in definition.get("GlobalSecondaryIndexes", [])
        )
    )


def _projects(there: dict[str, Any], needed: dict[str, Any]) -> bool:
    if "ALL" in (there["ProjectionType"], needed["ProjectionType"]):
        return bool(there["ProjectionType"] == "ALL")
    return set(needed.get("NonKeyAttributes", [])) <= set(there.get("NonKeyAttributes", []))


def _wait_until_there(connection: Connection, table: str) -> None:
    try:
        connection.client.get_waiter("table_exists").wait(TableName=table, WaiterConfig=_WAIT)
    except ERRORS as error:
        raise StoreUnavailable(f"The table {table} did not become active ({code_of(error)}).") from error


def _turn_expiry_on(connection: Connection, table: str) -> None:
    there = connection.call("describe_time_to_live", TableName=table)["TimeToLiveDescription"]
    if there["TimeToLiveStatus"] in ("DISABLED", "DISABLING"):
        specification = {"Enabled": True, "AttributeName": TTL_ATTRIBUTE}
        connection.call("update_time_to_live", TableName=table, TimeToLiveSpecification=specification)
    elif there["AttributeName"] != TTL_ATTRIBUTE:
        raise SettingsError(f"The table {table} deletes by {there['AttributeName']}, and not by {TTL_ATTRIBUTE}")


def _turn_recovery_on(connection: Connection, table: str) -> None:
    specification = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": RECOVERY_DAYS}
    for _ in range(_WAIT["MaxAttempts"]):
        try:
            connection.call(
                "update_continuous_backups", TableName=table, PointInTimeRecoverySpecification=specification
            )
            return
        except ERRORS as error:
            # DynamoDB Local has no backups.
            if code_of(error) == "UnknownOperationException":
                return
            # A table that has just been made is not ready for them at once.
            if code_of(error) != "ContinuousBackupsUnavailableException":
                raise
            time.sleep(_WAIT["Delay"])
    raise StoreUnavailable(f"Point-in-time recovery could not be turned on for {table}; `inbox init` tries again.")
