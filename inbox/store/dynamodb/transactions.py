"""Single writes, for a transaction or alone. An attribute that is None is one that the item does not have."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from inbox.store.dynamodb.layout import Item

T = TypeVar("T")


def optional(attribute: Callable[[T], dict[str, str]], value: T | None) -> dict[str, str] | None:
    return None if value is None else attribute(value)


def put(table: str, item: Item, condition: str | None = None) -> dict[str, Any]:
    there = {name: value for name, value in item.items() if value is not None}
    write = {"TableName": table, "Item": there}
    return write if condition is None else {**write, "ConditionExpression": condition}


def update(
    table: str, key: Item, attributes: Item, condition: str, values: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Sets these attributes and no others. The condition has them too: `#name` as it was, `:name` as it will be."""
    kept = {name: value for name, value in attributes.items() if value is not None}
    dropped = [f"#{name}" for name in attributes if name not in kept]
    expression = "SET " + ", ".join(f"#{name} = :{name}" for name in kept)
    return {
        "TableName": table,
        "Key": key,
        "UpdateExpression": f"{expression} REMOVE {', '.join(dropped)}" if dropped else expression,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {f"#{name}": name for name in attributes},
        "ExpressionAttributeValues": {f":{name}": value for name, value in kept.items()} | dict(values or {}),
    }
