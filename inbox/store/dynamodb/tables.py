"""The tables, defined once: `inbox init` makes them, and the deploy templates are held against this."""

from typing import Any

from inbox.errors import SettingsError, StoreUnavailable
from inbox.store.dynamodb import faults
from inbox.store.dynamodb.connection import PATIENCE, Connection, pause
from inbox.store.dynamodb.layout import EVENT_TYPE_INDEX, EVENTS, STATUS_INDEX, TENANT_API_KEYS, TENANTS

TTL_ATTRIBUTE = "ttl"
RECOVERY_DAYS = 35

_WAIT = {"Delay": 1, "MaxAttempts": 180}


def _keys(partition: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


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
                    "NonKeyAttributes": ["deliveries", "payload_bytes", TTL_ATTRIBUTE],
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
        "AttributeDefinitions": _strings("PK", "SK"),
    },
}


def make_tables(connection: Connection) -> None:
    """Makes those that are missing and sets up all of them; safe to repeat."""
    for name, definition in DEFINITIONS.items():
        table = connection.table(name)
        try:
            connection.call("create_table", TableName=table, **definition)
        except faults.ERRORS as error:
            if faults.code_of(error) != "ResourceInUseException":
                raise
    for name, definition in DEFINITIONS.items():
        table = connection.table(name)
        _wait_until_there(connection, table)
        _refuse_other_keys(connection.call("describe_table", TableName=table)["Table"], definition)
        _turn_expiry_on(connection, table)
        _turn_recovery_on(connection, table)


def _wait_until_there(connection: Connection, table: str) -> None:
    try:
        connection.client.get_waiter("table_exists").wait(TableName=table, WaiterConfig=_WAIT)
    except faults.ERRORS as error:
        raise StoreUnavailable(f"The table {table} did not become active ({faults.code_of(error)}).") from error


def _refuse_other_keys(described: dict[str, Any], definition: dict[str, Any]) -> None:
    def keys(of: dict[str, Any]) -> dict[str, Any]:
        indexes = {index["IndexName"]: index["KeySchema"] for index in of.get("GlobalSecondaryIndexes", [])}
        return {"": of["KeySchema"], **indexes}

    there, needed = keys(described), keys(definition)
    if any(there.get(index) != schema for index, schema in needed.items()):
        raise SettingsError(f"The table {described['TableName']} is there already, with other keys or indexes")


def _turn_expiry_on(connection: Connection, table: str) -> None:
    status = connection.call("describe_time_to_live", TableName=table)["TimeToLiveDescription"]["TimeToLiveStatus"]
    if status not in ("ENABLED", "ENABLING"):
        specification = {"Enabled": True, "AttributeName": TTL_ATTRIBUTE}
        connection.call("update_time_to_live", TableName=table, TimeToLiveSpecification=specification)


def _turn_recovery_on(connection: Connection, table: str) -> None:
    specification = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": RECOVERY_DAYS}
    for attempt in range(PATIENCE):
        try:
            connection.call(
                "update_continuous_backups", TableName=table, PointInTimeRecoverySpecification=specification
            )
            return
        except faults.ERRORS as error:
            code = faults.code_of(error)
            # DynamoDB Local has no backups.
            if code == "UnknownOperationException":
                return
            # A table that has just been made is not ready for them at once.
            if code != "ContinuousBackupsUnavailableException":
                raise
            pause(attempt)
    raise StoreUnavailable(f"Point-in-time recovery could not be turned on for {table}; `inbox init` tries again.")
