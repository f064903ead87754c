"""The size of an event, by the rules of docs.aws.amazon.com/amazondynamodb/…/CapacityUnitCalculations.html.

Computed because DynamoDB Local reports the size of the table for each index.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import EVENT_TYPE_INDEX, EVENTS, STATUS_INDEX, text

_PARTITION_KEYS = {None: "pk", STATUS_INDEX: "gsi1pk", EVENT_TYPE_INDEX: "gsi2pk"}


def stored_bytes(connection: Connection, tenant_id: str) -> dict[str, int]:
    """Returns the size of a tenant's largest event in the table and in each index, without DynamoDB's overhead."""
    sizes = {}
    for index, key in _PARTITION_KEYS.items():
        found = connection.call(
            "query",
            TableName=connection.table(EVENTS),
            KeyConditionExpression=f"{key} = :tenant",
            ExpressionAttributeValues={":tenant": text(tenant_id)},
            **({} if index is None else {"IndexName": index}),
        )["Items"]
        sizes[index or EVENTS] = max(_size_of_members(item) for item in found)
    return sizes


def _size_of_members(members: Mapping[str, Any]) -> int:
    return sum(len(name.encode()) + _size_of_value(value) for name, value in members.items())


def _size_of_value(attribute: Mapping[str, Any]) -> int:
    ((kind, value),) = attribute.items()
    match kind:
        case "S":
            return len(value.encode())
        case "B":
            return len(value)
        case "N":
            return ceil(len(value.lstrip("-").replace(".", "").strip("0")) / 2) + 1
        case "M":
            return 3 + len(value) + _size_of_members(value)
        case "L":
            return 3 + len(value) + sum(_size_of_value(each) for each in value)
        case _:
            return 1
