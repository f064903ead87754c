"""Looks a key up in DynamoDB, with its tenant."""

from typing import Any

import boto3
from botocore.config import Config

from authorizer.items import Item, find_key
from authorizer.resolver import KeyRecord

# Less patient than the service: API Gateway waits ten seconds for an authorizer, and both reads have to fit in.
_CONFIG = Config(
    connect_timeout=1,
    read_timeout=1,
    retries={"mode": "standard", "total_max_attempts": 2},
    tcp_keepalive=True,
)


class Lookup:
    def __init__(self, table_prefix: str, region: str | None) -> None:
        self._table_prefix = table_prefix
        self.client: Any = boto3.client("dynamodb", region_name=region, config=_CONFIG)

    def find(self, key_hash: str) -> KeyRecord | None:
        return find_key(self._get, key_hash)

    def _get(self, table: str, key: Item) -> Item | None:
        answer = self.client.get_item(TableName=self._table_prefix + table, Key=key, ConsistentRead=True)
        item: Item | None = answer.get("Item")
        return item
