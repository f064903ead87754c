"""The items that counts are kept in."""

from collections.abc import Iterator

from inbox.domain.stats import Span
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import (
    COUNTERS_OF_TENANT,
    TENANTS,
    Item,
    counter_of,
    counter_range,
    tenant_key,
    text,
)


class CounterItems:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._table = connection.table(TENANTS)

    def since(self, tenant_id: str, inbox: str, span: Span, since_ms: int) -> Iterator[tuple[int, Item]]:
        """Those of the hours or days that begin then or later, each with its beginning."""
        first, last = counter_range(inbox, span, since_ms)
        values = {":tenant": tenant_key(tenant_id)["PK"], ":first": text(first), ":last": text(last)}
        for item in self._connection.walk(
            TableName=self._table,
            KeyConditionExpression="PK = :tenant AND SK BETWEEN :first AND :last",
            ExpressionAttributeValues=values,
        ):
            its_inbox, _, start_ms = counter_of(item)
            if its_inbox == inbox and start_ms >= since_ms:
                yield start_ms, item

    def of_tenant(self, tenant_id: str) -> Iterator[Item]:
        return self._connection.all_pages(
            "query",
            TableName=self._table,
            KeyConditionExpression="PK = :tenant AND begins_with(SK, :counters)",
            ExpressionAttributeValues={":tenant": tenant_key(tenant_id)["PK"], ":counters": text(COUNTERS_OF_TENANT)},
            ConsistentRead=True,
        )

    def put(self, item: Item) -> None:
        self._connection.call("put_item", TableName=self._table, Item=item)

    def forget(self, tenant_id: str, inbox: str) -> None:
        """What a process has counted and not written down may still come."""
        for span in Span:
            keys = [{"PK": item["PK"], "SK": item["SK"]} for _, item in self.since(tenant_id, inbox, span, 0)]
            self._connection.at_once(self._delete, keys)

    def _delete(self, key: Item) -> None:
        self._connection.call("delete_item", TableName=self._table, Key=key)
