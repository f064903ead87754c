"""Writes, for `Connection.write` and `Connection.transact`.

An attribute with the value None is absent from the item.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from inbox.store.dynamodb.layout import Item

T = TypeVar("T")


def optional(attribute: Callable[[T], dict[str, str]], value: T | None) -> dict[str, str] | None:
    return None if value is None else attribute(value)


def put(
    table: str, item: Item, condition: str | None = None, values: Item | None = None, names: Item | None = None
) -> dict[str, Any]:
    item = {name: value for name, value in item.items() if value is not None}
    return {"Put": {"TableName": table, "Item": item, **_condition(condition, values, names)}}


def check(table: str, key: Item, condition: str, values: Item, names: Item) -> dict[str, Any]:
    """Writes nothing. For transactions."""
    return {"ConditionCheck": {"TableName": table, "Key": key, **_condition(condition, values, names)}}


def delete(table: str, key: Item, condition: str | None = None, values: Item | None = None) -> dict[str, Any]:
    return {"Delete": {"TableName": table, "Key": key, **_condition(condition, values)}}


def update(
    table: str, key: Item, attributes: Item, condition: str | None = None, values: Item | None = None
) -> dict[str, Any]:
    """Sets these attributes, or removes those that are None, and changes no others.

    The condition can use `#name` for the stored and `:name` for the new value of each, and `values`.
    """
    set_attributes = {name: value for name, value in attributes.items() if value is not None}
    assignments = ", ".join(f"#{name} = :{name}" for name in set_attributes)
    removed = ", ".join(f"#{name}" for name in attributes if name not in set_attributes)
    actions = {"SET": assignments, "REMOVE": removed}
    return {
        "Update": {
            "TableName": table,
            "Key": key,
            "UpdateExpression": " ".join(f"{action} {what}" for action, what in actions.items() if what),
            "ExpressionAttributeNames": {f"#{name}": name for name in attributes},
            **_condition(condition, {f":{name}": value for name, value in set_attributes.items()} | dict(values or {})),
        }
    }


def _condition(condition: str | None, values: Item | None, names: Item | None = None) -> dict[str, Any]:
    parameters = {
        "ConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }
    return {name: value for name, value in parameters.items() if value}
