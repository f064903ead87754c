"""The tables of tenants and keys on DynamoDB, written without a store, because the authorizer ships without one."""

import uuid
from typing import Any

from authorizer import apikey
from tests.engines.aws import dynamodb_client


class Registry:
    def __init__(self, url: str) -> None:
        self.prefix = f"test-{uuid.uuid4().hex[:8]}-"
        self.client = dynamodb_client(url)
        self._create_table("TenantApiKeys", "pk", "sk")
        self._create_table("Tenants", "PK", "SK")

    def add_tenant(self, **attributes: dict[str, str]) -> str:
        tenant_id = f"tenant-{uuid.uuid4().hex[:8]}"
        item = {
            "PK": {"S": f"TENANT#{tenant_id}"},
            "SK": {"S": "METADATA"},
            "tenant_id": {"S": tenant_id},
            "status": {"S": "REGISTERED"},
            "active": {"S": "true"},
        }
        self.client.put_item(TableName=f"{self.prefix}Tenants", Item=item | attributes)
        return tenant_id

    def add_key(self, tenant_id: str, **attributes: dict[str, Any]) -> str:
        key = apikey.mint()
        item = {
            "pk": {"S": apikey.hash_of(key)},
            "sk": {"S": "meta"},
            "key_id": {"S": f"key-{uuid.uuid4().hex[:8]}"},
            "tenant_id": {"S": tenant_id},
            "name": {"S": "the shop"},
            "scopes": {"L": [{"S": "inbox:read"}, {"S": "events:write"}]},
            "status": {"S": "active"},
            "created_at": {"N": "1732140249123"},
        }
        self.client.put_item(TableName=f"{self.prefix}TenantApiKeys", Item=item | attributes)
        return key

    def revoke(self, key: str) -> None:
        self.client.update_item(
            TableName=f"{self.prefix}TenantApiKeys",
            Key={"pk": {"S": apikey.hash_of(key)}, "sk": {"S": "meta"}},
            UpdateExpression="SET #status = :revoked",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":revoked": {"S": "revoked"}},
        )

    def _create_table(self, name: str, partition_key: str, sort_key: str) -> None:
        self.client.create_table(
            TableName=self.prefix + name,
            KeySchema=[
                {"AttributeName": partition_key, "KeyType": "HASH"},
                {"AttributeName": sort_key, "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[{"AttributeName": each, "AttributeType": "S"} for each in (partition_key, sort_key)],
            BillingMode="PAY_PER_REQUEST",
        )
