"""The DynamoDB items of keys and tenants: table names, primary keys and parsing."""

from collections.abc import Callable, Mapping
from typing import Any

from authorizer.resolver import KeyRecord, Principal

Item = Mapping[str, Any]
"""An item in DynamoDB's JSON: every value inside its type, `{"S": "text"}`."""

TENANT_API_KEYS = "TenantApiKeys"
TENANTS = "Tenants"
METADATA = "METADATA"
ACTIVE = "true"


def api_key_key(key_hash: str) -> dict[str, Any]:
    return {"pk": {"S": key_hash}, "sk": {"S": "meta"}}


def tenant_key(tenant_id: str) -> dict[str, Any]:
    return {"PK": {"S": f"TENANT#{tenant_id}"}, "SK": {"S": METADATA}}


def read_key_record(get: Callable[[str, Item], Item | None], key_hash: str) -> KeyRecord | None:
    """Returns the key with its tenant, or None if it is unknown or revoked. `get` reads an item consistently."""
    key = get(TENANT_API_KEYS, api_key_key(key_hash))
    if key is None or key["status"]["S"] != "active":
        return None
    tenant_id = key["tenant_id"]["S"]
    tenant = get(TENANTS, tenant_key(tenant_id))
    if tenant is None:
        return None
    return KeyRecord(
        Principal(
            tenant_id=tenant_id,
            tenant_name=tenant["organization_name"]["S"] if "organization_name" in tenant else tenant_id,
            tenant_active=tenant["active"]["S"] == ACTIVE and tenant["status"]["S"] != "SUSPENDED",
            key_id=key["key_id"]["S"],
            scopes=frozenset(scope["S"] for scope in key["scopes"]["L"]),
            rate_limit=optional_number(tenant, "rate_limit"),
        ),
        expires_at_ms=optional_number(key, "expires_at"),
        last_used_at_ms=optional_number(key, "last_used_at"),
    )


def optional_number(item: Item, attribute: str) -> int | None:
    return int(item[attribute]["N"]) if attribute in item else None
