"""The tenants in the order in which they were created, read from the registry's indexes."""

import heapq
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

from inbox.domain.tenants import Tenant, TenantPosition, TenantSelection
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import (
    ACTIVE_INDEX,
    TENANT_STATUS_INDEX,
    TENANTS,
    Item,
    active_key,
    created_range,
    text,
)
from inbox.store.dynamodb.tenant_items import to_tenant

# The tenant at the place itself comes once more, and the end of a millisecond shows by what lies beyond it.
_BESIDES = 2


class TenantList:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def page(self, selection: TenantSelection, limit: int, after: TenantPosition | None) -> list[Tenant]:
        # DynamoDB refuses a range that ends before it begins.
        first, last = _range(selection, after)
        if first > last:
            return []
        walks = [
            self._connection.walk(
                TableName=self._connection.table(TENANTS),
                KeyConditionExpression="#partition = :partition AND date_created BETWEEN :first AND :last",
                ExpressionAttributeValues={":partition": partition, ":first": text(first), ":last": text(last)},
                ScanIndexForward=False,
                Limit=limit + _BESIDES,
                **index,
            )
            for index, partition in _partitions(selection)
        ]
        selected = (
            tenant
            for tenant in _in_order(heapq.merge(*walks, key=_date_created, reverse=True))
            if (tenant.active or selection.include_inactive) and (after is None or tenant.position < after)
        )
        return list(islice(selected, limit))

    def all(self) -> list[Tenant]:
        # Not by a Scan, which would read all that the table has beside them.
        items = (
            item
            for index, partition in _partitions(TenantSelection(include_inactive=True))
            for item in self._connection.all_pages(
                "query",
                TableName=self._connection.table(TENANTS),
                KeyConditionExpression="#partition = :partition",
                ExpressionAttributeValues={":partition": partition},
                **index,
            )
        )
        return sorted(_latest(map(to_tenant, items)), key=attrgetter("tenant_id"))


def _range(selection: TenantSelection, after: TenantPosition | None) -> tuple[str, str]:
    ends = [] if selection.until_ms is None else [selection.until_ms - 1]
    # Its millisecond once more: those of one millisecond stand in the index in no order.
    ends += [] if after is None else [after.created_at_ms]
    return created_range(selection.since_ms, min(ends, default=None))


def _partitions(selection: TenantSelection) -> list[tuple[dict[str, Any], dict[str, str]]]:
    """Each index with the partition of it that has to be read."""
    if selection.status is not None:
        index = {"IndexName": TENANT_STATUS_INDEX, "ExpressionAttributeNames": {"#partition": "status"}}
        return [(index, text(selection.status))]
    index = {"IndexName": ACTIVE_INDEX, "ExpressionAttributeNames": {"#partition": "active"}}
    either = (True, False) if selection.include_inactive else (True,)
    return [(index, text(active_key(active))) for active in either]


def _in_order(items: Iterable[Item]) -> Iterator[Tenant]:
    """Those of one millisecond by their ids, and each once: while an index lags, it can show a tenant in two states."""
    for _, group in groupby((to_tenant(item) for item in items), key=attrgetter("created_at_ms")):
        yield from sorted(_latest(group), key=attrgetter("place"), reverse=True)


def _latest(tenants: Iterable[Tenant]) -> Iterable[Tenant]:
    return {tenant.tenant_id: tenant for tenant in sorted(tenants, key=attrgetter("version"))}.values()


def _date_created(item: Item) -> str:
    date: str = item["date_created"]["S"]
    return date
