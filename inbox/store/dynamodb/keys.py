"""API keys in DynamoDB."""

from typing import Any

from authorizer.resolver import KeyRecord, Principal
from inbox.errors import NotFound
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.faults import ConditionFailed
from inbox.store.dynamodb.layout import (
    KEYS_OF_TENANT,
    TENANT_API_KEYS,
    TENANTS,
    Item,
    api_key_key,
    key_id_key,
    key_of_tenant_key,
    number,
    tenant_key,
    text,
)
from inbox.tenants import ApiKey, KeyStatus, Scope, TenantStatus


class DynamoDBKeys:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, key: ApiKey) -> None:
        # Together, so that no key works that is not listed, and none is listed that does not work.
        writes = [
            self._check_tenant(key.tenant_id),
            self._put(TENANT_API_KEYS, {**api_key_key(key.key_hash), **_attributes(key)}),
            self._put(TENANTS, {**key_of_tenant_key(key.tenant_id, key.key_id), "key_hash": text(key.key_hash)}),
            self._put(TENANTS, {**key_id_key(key.key_id), "key_hash": text(key.key_hash)}),
        ]
        try:
            self._connection.transact(*writes)
        except ConditionFailed:
            raise NotFound(f"There is no tenant {key.tenant_id}.") from None

    def find(self, key_hash: str) -> KeyRecord | None:
        item = self._connection.get(TENANT_API_KEYS, api_key_key(key_hash))
        if item is None or item["status"] != text(KeyStatus.ACTIVE):
            return None
        key = _key(item)
        tenant = self._connection.get(TENANTS, tenant_key(key.tenant_id))
        if tenant is None:
            return None
        active = tenant["status"] == text(TenantStatus.ACTIVE)
        principal = Principal(key.tenant_id, tenant["name"]["S"], active, key.key_id, frozenset(key.scopes))
        return KeyRecord(principal, key.expires_at_ms)

    def of_tenant(self, tenant_id: str) -> list[ApiKey]:
        pointers = self._connection.all_pages(
            "query",
            TableName=self._connection.table(TENANTS),
            KeyConditionExpression="PK = :tenant AND begins_with(SK, :keys)",
            ExpressionAttributeValues={":tenant": tenant_key(tenant_id)["PK"], ":keys": text(KEYS_OF_TENANT)},
            ConsistentRead=True,
        )
        hashes = [pointer["key_hash"]["S"] for pointer in pointers]
        items = self._connection.get_many(TENANT_API_KEYS, [api_key_key(each) for each in hashes])
        return sorted((_key(item) for item in items), key=lambda key: (key.created_at_ms, key.key_id))

    def revoke(self, key_id: str) -> bool:
        pointer = self._connection.get(TENANTS, key_id_key(key_id))
        if pointer is None:
            return False
        self._connection.call(
            "update_item",
            TableName=self._connection.table(TENANT_API_KEYS),
            Key=api_key_key(pointer["key_hash"]["S"]),
            UpdateExpression="SET #status = :revoked",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":revoked": text(KeyStatus.REVOKED)},
        )
        return True

    def _check_tenant(self, tenant_id: str) -> dict[str, Any]:
        return {
            "ConditionCheck": {
                "TableName": self._connection.table(TENANTS),
                "Key": tenant_key(tenant_id),
                "ConditionExpression": "attribute_exists(PK)",
            }
        }

    def _put(self, table: str, item: Item) -> dict[str, Any]:
        return {"Put": {"TableName": self._connection.table(table), "Item": item}}


def _attributes(key: ApiKey) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "key_id": text(key.key_id),
        "tenant_id": text(key.tenant_id),
        "name": text(key.name),
        # A list: DynamoDB has no empty set.
        "scopes": {"L": [text(scope) for scope in sorted(key.scopes)]},
        "status": text(key.status),
        "created_at": number(key.created_at_ms),
    }
    if key.expires_at_ms is not None:
        attributes["expires_at"] = number(key.expires_at_ms)
    return attributes


def _key(item: Item) -> ApiKey:
    return ApiKey(
        key_id=item["key_id"]["S"],
        key_hash=item["pk"]["S"],
        tenant_id=item["tenant_id"]["S"],
        name=item["name"]["S"],
        scopes=frozenset(Scope(scope["S"]) for scope in item["scopes"]["L"]),
        status=KeyStatus(item["status"]["S"]),
        created_at_ms=int(item["created_at"]["N"]),
        expires_at_ms=int(item["expires_at"]["N"]) if "expires_at" in item else None,
    )
