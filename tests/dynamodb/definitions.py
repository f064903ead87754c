"""Definitions of tables that lack something."""

from typing import Any

from inbox.store.dynamodb.tables import DEFINITIONS


def without_indexes(name: str, *indexes: str) -> dict[str, Any]:
    definition = dict(DEFINITIONS[name])
    kept = [each for each in definition.pop("GlobalSecondaryIndexes") if each["IndexName"] not in indexes]
    return with_keys_only(definition | ({"GlobalSecondaryIndexes": kept} if kept else {}))


def with_keys_only(definition: dict[str, Any]) -> dict[str, Any]:
    """Removes the attributes that are no key, because DynamoDB refuses their definitions."""
    keys = {
        key["AttributeName"]
        for each in (definition, *definition.get("GlobalSecondaryIndexes", []))
        for key in each["KeySchema"]
    }
    attributes = [each for each in definition["AttributeDefinitions"] if each["AttributeName"] in keys]
    return definition | {"AttributeDefinitions": attributes}
