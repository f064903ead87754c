"""The tables, as `inbox init` creates them. A test compares the deploy templates with these definitions."""

from typing import Any

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
STREAM_VIEW_TYPE = "NEW_AND_OLD_IMAGES"
"""The only one that global tables accept."""


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
