"""Tenants with their email addresses and audit logs, and lists of tenants from the indexes."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from authorizer.items import optional_number
from inbox.domain.tenants import (
    AuditAction,
    AuditEntry,
    Change,
    Tenant,
    TenantPosition,
    TenantSelection,
    TenantStatus,
    email_key,
)
from inbox.domain.timestamps import format_timestamp, parse_timestamp
from inbox.errors import EmailTaken, TenantExists
from inbox.store.dynamodb import layout, writes
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import ACTIVE_INDEX, TENANT_STATUS_INDEX, TENANTS, Item, number, text, text_in
from inbox.store.dynamodb.shards import Shards

_NEW = "attribute_not_exists(PK)"
_SAME_VERSION = "#version = :expected"

# The limit of a transaction is 100 writes; three are for the tenant, its email address and its previous one.
_MAX_ENTRIES_PER_TRANSACTION = 97
# A page reads the tenant at the position again, and the end of a millisecond shows by the tenant behind it.
_EXTRA_TENANTS = 2


class DynamoDBTenants:
    def __init__(self, connection: Connection, shards: Shards) -> None:
        self._connection = connection
        self._table = connection.table(TENANTS)
        self.shard = shards.change

    def create(self, tenant: Tenant, audit_entries: Sequence[AuditEntry]) -> None:
        self._refuse_if_taken(tenant)
        item = layout.tenant_key(tenant.tenant_id) | _attributes(tenant)
        tenant_writes = [writes.put(self._table, item, _NEW), *self._take_email(tenant)]
        if not self._try_write(tenant, tenant_writes, audit_entries):
            # Another process was faster. As above, a taken ID is reported before a taken email address.
            self._refuse_if_taken(tenant)
            raise EmailTaken

    def update(self, tenant: Tenant, version: int, audit_entries: Sequence[AuditEntry]) -> bool:
        stored = self.get(tenant.tenant_id)
        if stored is None or stored.version != version:
            return False
        expected = {":expected": number(version)}
        # Not a put: the item has other attributes too, above all the tenant's shards.
        key = layout.tenant_key(tenant.tenant_id)
        tenant_writes = [writes.update(self._table, key, _attributes(tenant), _SAME_VERSION, expected)]
        if _email_key(tenant) != _email_key(stored):
            self._refuse_if_email_taken(tenant)
            tenant_writes += [*self._take_email(tenant), *self._release_email(stored)]
        if self._try_write(tenant, tenant_writes, audit_entries):
            return True
        stored = self.get(tenant.tenant_id)
        if stored is not None and stored.version == version:
            raise EmailTaken
        return False

    def get(self, tenant_id: str) -> Tenant | None:
        item = self._connection.get(TENANTS, layout.tenant_key(tenant_id))
        return None if item is None else _to_tenant(item)

    def get_by_email(self, email: str) -> Tenant | None:
        # Not by EmailIndex, which lags: once EmailTaken was raised, this must find the tenant.
        pointer = self._connection.get(TENANTS, layout.email_item_key(email_key(email)))
        tenant = None if pointer is None else self.get(pointer["tenant_id"]["S"])
        # The tenant's email address may have changed between the two reads.
        return tenant if tenant is not None and _email_key(tenant) == email_key(email) else None

    def page(self, selection: TenantSelection, limit: int, after: TenantPosition | None) -> list[Tenant]:
        found = [
            self._connection.query_items(TENANTS, **query, ScanIndexForward=False, Limit=limit + _EXTRA_TENANTS)
            for query in self._list_queries(selection, after)
        ]
        by_date = heapq.merge(*found, key=lambda item: str(item["date_created"]["S"]), reverse=True)
        selected = (
            tenant
            for tenant in _in_order(by_date)
            if (tenant.active or selection.include_inactive) and (after is None or tenant.position < after)
        )
        return list(islice(selected, limit))

    def audit_log(self, tenant_id: str, limit: int, before: int | None) -> list[AuditEntry]:
        items = self._connection.query_items(
            TENANTS,
            **layout.tenant_items_query(tenant_id, layout.audit_range(before)),
            ScanIndexForward=False,
            Limit=limit,
            ConsistentRead=True,
        )
        return [_to_audit_entry(item) for item in islice(items, limit)]

    def all(self) -> list[Tenant]:
        # Not by a scan, which would read everything else in the table too.
        queries = self._list_queries(TenantSelection(include_inactive=True), None)
        items = chain(*(self._connection.all_items(TENANTS, **query) for query in queries))
        return sorted(_latest_versions(map(_to_tenant, items)), key=attrgetter("tenant_id"))

    def _list_queries(self, selection: TenantSelection, after: TenantPosition | None) -> list[dict[str, Any]]:
        """Returns the parameters of a query for each partition of the index to read."""
        ends = [] if selection.until_ms is None else [selection.until_ms - 1]
        # Includes the position's millisecond: tenants of the same millisecond are in the index in no order.
        ends += [] if after is None else [after.created_at_ms]
        first, last = layout.creation_date_range(selection.since_ms, min(ends, default=None))
        # DynamoDB refuses a range that ends before it begins.
        if first > last:
            return []
        if selection.status is not None:
            index, attribute, partitions = TENANT_STATUS_INDEX, "status", [str(selection.status)]
        else:
            either = (True, False) if selection.include_inactive else (True,)
            index, attribute, partitions = ACTIVE_INDEX, "active", [layout.active_key(active) for active in either]
        return [
            {
                "IndexName": index,
                "KeyConditionExpression": "#partition = :partition AND date_created BETWEEN :first AND :last",
                "ExpressionAttributeNames": {"#partition": attribute},
                "ExpressionAttributeValues": {":partition": text(each), ":first": text(first), ":last": text(last)},
            }
            for each in partitions
        ]

    def _refuse_if_taken(self, tenant: Tenant) -> None:
        if self.get(tenant.tenant_id) is not None:
            raise TenantExists(tenant.tenant_id)
        self._refuse_if_email_taken(tenant)

    def _refuse_if_email_taken(self, tenant: Tenant) -> None:
        key = _email_key(tenant)
        if key is not None and self._connection.get(TENANTS, layout.email_item_key(key)) is not None:
            raise EmailTaken

    def _take_email(self, tenant: Tenant) -> list[dict[str, Any]]:
        key = _email_key(tenant)
        if key is None:
            return []
        return [writes.put(self._table, {**layout.email_item_key(key), "tenant_id": text(tenant.tenant_id)}, _NEW)]

    def _release_email(self, tenant: Tenant) -> list[dict[str, Any]]:
        key = _email_key(tenant)
        return [] if key is None else [writes.delete(self._table, layout.email_item_key(key))]

    def _try_write(
        self, tenant: Tenant, tenant_writes: list[dict[str, Any]], audit_entries: Sequence[AuditEntry]
    ) -> bool:
        items = [_audit_item(tenant.tenant_id, entry) for entry in audit_entries]
        # `inbox copy` may pass more entries than one transaction can write. The rest is written first, so that a copy
        # that was interrupted here can be repeated.
        for item in items[:-_MAX_ENTRIES_PER_TRANSACTION]:
            self._connection.try_write(writes.put(self._table, item, _NEW))
        puts = [writes.put(self._table, item) for item in items[-_MAX_ENTRIES_PER_TRANSACTION:]]
        return self._connection.try_write(*tenant_writes, *puts)


def _in_order(items: Iterable[Item]) -> Iterator[Tenant]:
    """Sorts the tenants of a millisecond, and yields each once: a lagging index may list a tenant in two states."""
    for _, group in groupby((_to_tenant(item) for item in items), key=attrgetter("created_at_ms")):
        yield from sorted(_latest_versions(group), key=attrgetter("position"), reverse=True)


def _latest_versions(tenants: Iterable[Tenant]) -> Iterable[Tenant]:
    return {tenant.tenant_id: tenant for tenant in sorted(tenants, key=attrgetter("version"))}.values()


def _attributes(tenant: Tenant) -> dict[str, Any]:
    """Returns everything that an update may write: all but the key and the shards."""
    key = _email_key(tenant)
    return {
        "tenant_id": text(tenant.tenant_id),
        "organization_name": writes.optional(text, tenant.organization_name),
        # In the form in which email addresses are compared, so that EmailIndex finds any spelling.
        "email": writes.optional(text, key),
        "email_as_given": writes.optional(text, None if tenant.email == key else tenant.email),
        "destination_email": writes.optional(text, tenant.destination_email),
        "rate_limit": writes.optional(number, tenant.rate_limit),
        "status": text(tenant.status),
        "status_before_suspension": writes.optional(text, tenant.status_before_suspension),
        "active": text(layout.active_key(tenant.active)),
        "date_created": text(format_timestamp(tenant.created_at_ms)),
        "date_last_updated": text(format_timestamp(tenant.updated_at_ms)),
        "last_updated_by": text(tenant.updated_by),
        "version": number(tenant.version),
    }


def _email_key(tenant: Tenant) -> str | None:
    return None if tenant.email is None else email_key(tenant.email)


def _to_tenant(item: Item) -> Tenant:
    status_before = text_in(item, "status_before_suspension")
    return Tenant(
        tenant_id=layout.tenant_id_of(item),
        organization_name=text_in(item, "organization_name"),
        email=text_in(item, "email_as_given") or text_in(item, "email"),
        destination_email=text_in(item, "destination_email"),
        rate_limit=optional_number(item, "rate_limit"),
        status=TenantStatus(item["status"]["S"]),
        status_before_suspension=None if status_before is None else TenantStatus(status_before),
        active=item["active"]["S"] == layout.active_key(True),
        created_at_ms=_timestamp_in(item, "date_created"),
        updated_at_ms=_timestamp_in(item, "date_last_updated"),
        updated_by=item["last_updated_by"]["S"],
        version=int(item["version"]["N"]),
    )


def _audit_item(tenant_id: str, entry: AuditEntry) -> dict[str, Any]:
    """Returns the item of an audit entry. No attribute has the name of an index's key, so no index contains it."""
    changes = {
        member: TypeSerializer().serialize([change.before, change.after]) for member, change in entry.changes.items()
    }
    return {
        **layout.audit_key(tenant_id, entry.number),
        "number": number(entry.number),
        "date": text(format_timestamp(entry.at_ms)),
        "by": text(entry.by),
        "action": text(entry.action),
        "changes": {"M": changes},
        "forced": {"BOOL": entry.forced},
    }


def _to_audit_entry(item: Item) -> AuditEntry:
    return AuditEntry(
        number=int(item["number"]["N"]),
        at_ms=_timestamp_in(item, "date"),
        by=item["by"]["S"],
        action=AuditAction(item["action"]["S"]),
        changes={member: Change(*map(_from_attribute, change["L"])) for member, change in item["changes"]["M"].items()},
        forced=item["forced"]["BOOL"],
    )


def _from_attribute(attribute: Item) -> str | int | None:
    value: str | int | None = TypeDeserializer().deserialize(attribute)
    return int(value) if isinstance(value, Decimal) else value


def _timestamp_in(item: Item, attribute: str) -> int:
    timestamp_ms = parse_timestamp(item[attribute]["S"])
    if timestamp_ms is None:
        raise ValueError(f"{attribute} is not a timestamp")
    return timestamp_ms
