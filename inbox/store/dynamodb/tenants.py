"""Tenants in DynamoDB."""

from typing import Any

from inbox.errors import AlreadyExists, NotFound
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.faults import ConditionFailed
from inbox.store.dynamodb.layout import IS_TENANT, TENANTS, Item, number, tenant_key, text
from inbox.store.dynamodb.shards import NOTICE_MS
from inbox.tenants import Tenant, TenantStatus


class DynamoDBTenants:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, tenant: Tenant) -> None:
        item = _item(tenant)
        try:
            self._connection.call(
                "put_item",
                TableName=self._connection.table(TENANTS),
                Item=item,
                ConditionExpression="attribute_not_exists(PK)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ConditionFailed as failed:
            # A retry after a timeout meets our own write, made in the same millisecond to the last letter.
            if failed.there != item:
                raise AlreadyExists(f"There is a tenant {tenant.tenant_id} already.") from None

    def get(self, tenant_id: str) -> Tenant | None:
        item = self._connection.get(TENANTS, tenant_key(tenant_id))
        return None if item is None else _tenant(item)

    def shard(self, tenant_id: str, shards: int, now_ms: int) -> None:
        new = {"L": [{"M": {"count": number(shards), "since": number(now_ms + NOTICE_MS)}}]}
        try:
            # Appended: where events went before is where they still are.
            self._connection.call(
                "update_item",
                TableName=self._connection.table(TENANTS),
                Key=tenant_key(tenant_id),
                UpdateExpression="SET shards = list_append(if_not_exists(shards, :none), :new)",
                ConditionExpression="attribute_exists(PK)",
                ExpressionAttributeValues={":new": new, ":none": {"L": []}},
            )
        except ConditionFailed:
            raise NotFound(f"There is no tenant {tenant_id}.") from None

    def all(self) -> list[Tenant]:
        items = self._connection.all_pages(
            "scan",
            TableName=self._connection.table(TENANTS),
            FilterExpression="SK = :metadata AND begins_with(PK, :tenant)",
            ExpressionAttributeValues=IS_TENANT,
            ConsistentRead=True,
        )
        return sorted((_tenant(item) for item in items), key=lambda tenant: tenant.tenant_id)


def _item(tenant: Tenant) -> dict[str, Any]:
    item: dict[str, Any] = {
        **tenant_key(tenant.tenant_id),
        "tenant_id": text(tenant.tenant_id),
        "name": text(tenant.name),
        "status": text(tenant.status),
        "created_at": number(tenant.created_at_ms),
    }
    if tenant.email is not None:
        item["email"] = text(tenant.email)
    return item


def _tenant(item: Item) -> Tenant:
    return Tenant(
        tenant_id=item["tenant_id"]["S"],
        name=item["name"]["S"],
        email=item["email"]["S"] if "email" in item else None,
        status=TenantStatus(item["status"]["S"]),
        created_at_ms=int(item["created_at"]["N"]),
    )
