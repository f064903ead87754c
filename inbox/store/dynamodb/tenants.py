"""Tenants in DynamoDB, with their e-mails and audit trails."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

from authorizer.items import number_in
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
from inbox.errors import EmailTaken, NotFound, TenantExists
from inbox.store.dynamodb.connection import ConditionFailed, Connection, optional, put, update
from inbox.store.dynamodb.layout import (
    ACTIVE_INDEX,
    TENANT_STATUS_INDEX,
    TENANTS,
    Item,
    active_key,
    audit_key,
    audit_range,
    created_range,
    email_item_key,
    number,
    tenant_key,
    text,
)
from inbox.store.dynamodb.shards import NOTICE_MS, Sharding


def attributes_of(tenant: Tenant) -> dict[str, Any]:
    """All that a change may write; the item's key and `shards` are apart."""
    key = email_key_of(tenant)
    return {
        "tenant_id": text(tenant.tenant_id),
        "organization_name": optional(text, tenant.organization_name),
        # As it is compared, so that EmailIndex finds it however it is written.
        "email": optional(text, key),
        "email_as_given": optional(text, None if tenant.email == key else tenant.email),
        "destination_email": optional(text, tenant.destination_email),
        "rate_limit": optional(number, tenant.rate_limit),
        "status": text(tenant.status),
        "status_before_suspension": optional(text, tenant.status_before_suspension),
        "active": text(active_key(tenant.active)),
        "date_created": text(format_timestamp(tenant.created_at_ms)),
        "date_last_updated": text(format_timestamp(tenant.updated_at_ms)),
        "last_updated_by": text(tenant.updated_by),
        "version": number(tenant.version),
    }


def email_key_of(tenant: Tenant) -> str | None:
    return None if tenant.email is None else email_key(tenant.email)


def to_tenant(item: Item) -> Tenant:
    before = _text_in(item, "status_before_suspension")
    return Tenant(
        tenant_id=item["tenant_id"]["S"],
        organization_name=_text_in(item, "organization_name"),
        email=_text_in(item, "email_as_given") or _text_in(item, "email"),
        destination_email=_text_in(item, "destination_email"),
        rate_limit=number_in(item, "rate_limit"),
        status=TenantStatus(item["status"]["S"]),
        status_before_suspension=None if before is None else TenantStatus(before),
        active=item["active"]["S"] == active_key(True),
        created_at_ms=_moment_in(item, "date_created"),
        updated_at_ms=_moment_in(item, "date_last_updated"),
        updated_by=item["last_updated_by"]["S"],
        version=int(item["version"]["N"]),
    )


def audit_item(tenant_id: str, entry: AuditEntry) -> dict[str, Any]:
    """None of its attributes has the name of an index's key: entries are found among the tenant's own items alone."""
    changes = {
        member: {"L": [_to_attribute(change.before), _to_attribute(change.after)]}
        for member, change in entry.changes.items()
    }
    return {
        **audit_key(tenant_id, entry.number),
        "number": number(entry.number),
        "date": text(format_timestamp(entry.at_ms)),
        "by": text(entry.by),
        "action": text(entry.action),
        "changes": {"M": changes},
        "forced": {"BOOL": entry.forced},
    }


def to_audit_entry(item: Item) -> AuditEntry:
    return AuditEntry(
        number=int(item["number"]["N"]),
        at_ms=_moment_in(item, "date"),
        by=item["by"]["S"],
        action=AuditAction(item["action"]["S"]),
        changes={
            member: Change(*(_from_attribute(value) for value in change["L"]))
            for member, change in item["changes"]["M"].items()
        },
        forced=item["forced"]["BOOL"],
    )


def _to_attribute(value: str | int | None) -> dict[str, Any]:
    match value:
        case None:
            return {"NULL": True}
        # A boolean is an int to Python, and no number to DynamoDB.
        case bool():
            return {"BOOL": value}
        case int():
            return number(value)
        case str():
            return text(value)


def _from_attribute(attribute: Item) -> str | int | None:
    ((kind, value),) = attribute.items()
    match kind:
        case "NULL":
            return None
        case "N":
            return int(value)
        case _:
            known: str | int = value
            return known


def _text_in(item: Item, attribute: str) -> str | None:
    return item[attribute]["S"] if attribute in item else None


def _moment_in(item: Item, attribute: str) -> int:
    moment = parse_timestamp(item[attribute]["S"])
    if moment is None:
        raise ValueError(f"{attribute} is no moment")
    return moment


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
        yield from sorted(_latest(group), key=attrgetter("position"), reverse=True)


def _latest(tenants: Iterable[Tenant]) -> Iterable[Tenant]:
    return {tenant.tenant_id: tenant for tenant in sorted(tenants, key=attrgetter("version"))}.values()


def _date_created(item: Item) -> str:
    date: str = item["date_created"]["S"]
    return date


_NEW = "attribute_not_exists(PK)"
_AT_THAT_VERSION = "#version = :expected"

# DynamoDB takes 100 writes in a transaction; three are for the tenant, its e-mail and the one before.
_MAX_ENTRIES = 97


class DynamoDBTenants:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._table = connection.table(TENANTS)
        self._list = TenantList(connection)

    def create(self, tenant: Tenant, audit_entries: Sequence[AuditEntry]) -> None:
        self._refuse_if_taken(tenant)
        item = tenant_key(tenant.tenant_id) | attributes_of(tenant)
        try:
            self._write(tenant, [{"Put": put(self._table, item, _NEW)}, *self._take_email(tenant)], audit_entries)
        except ConditionFailed:
            # Somebody was quicker.
            self._refuse_if_taken(tenant)
            raise EmailTaken from None

    def update(self, tenant: Tenant, version: int, audit_entries: Sequence[AuditEntry]) -> bool:
        there = self.get(tenant.tenant_id)
        if there is None or there.version != version:
            return False
        expected = {":expected": number(version)}
        # An update: the item has more than the tenant, its shards above all.
        changed = update(self._table, tenant_key(tenant.tenant_id), attributes_of(tenant), _AT_THAT_VERSION, expected)
        writes: list[dict[str, Any]] = [{"Update": changed}]
        if email_key_of(tenant) != email_key_of(there):
            self._refuse_if_email_taken(tenant)
            writes += [*self._take_email(tenant), *self._let_email_go(there)]
        try:
            self._write(tenant, writes, audit_entries)
        except ConditionFailed:
            now = self.get(tenant.tenant_id)
            if now is not None and now.version == version:
                raise EmailTaken from None
            return False
        return True

    def get(self, tenant_id: str) -> Tenant | None:
        item = self._connection.get(TENANTS, tenant_key(tenant_id))
        return None if item is None else to_tenant(item)

    def get_by_email(self, email: str) -> Tenant | None:
        # Not through EmailIndex, which lags: whoever was told that an e-mail is taken can ask whose it is.
        pointer = self._connection.get(TENANTS, email_item_key(email_key(email)))
        tenant = None if pointer is None else self.get(pointer["tenant_id"]["S"])
        # It may have taken another one between the two reads.
        return tenant if tenant is not None and email_key_of(tenant) == email_key(email) else None

    def page(self, selection: TenantSelection, limit: int, after: TenantPosition | None) -> list[Tenant]:
        return self._list.page(selection, limit, after)

    def audit_log(self, tenant_id: str, limit: int, before: int | None) -> list[AuditEntry]:
        first, last = audit_range(before)
        items = self._connection.walk(
            TableName=self._table,
            KeyConditionExpression="PK = :tenant AND SK BETWEEN :first AND :last",
            ExpressionAttributeValues={
                ":tenant": tenant_key(tenant_id)["PK"],
                ":first": text(first),
                ":last": text(last),
            },
            ScanIndexForward=False,
            Limit=limit,
            ConsistentRead=True,
        )
        return [to_audit_entry(item) for item in islice(items, limit)]

    def all(self) -> list[Tenant]:
        return self._list.all()

    def shard(self, tenant_id: str, shards: int, now_ms: int) -> None:
        new = {"L": [Sharding(shards, now_ms + NOTICE_MS).to_attribute()]}
        try:
            # Appended: where events went before is where they still are.
            self._connection.call(
                "update_item",
                TableName=self._table,
                Key=tenant_key(tenant_id),
                UpdateExpression="SET shards = list_append(if_not_exists(shards, :none), :new)",
                ConditionExpression="attribute_exists(PK)",
                ExpressionAttributeValues={":new": new, ":none": {"L": []}},
            )
        except ConditionFailed:
            raise NotFound(f"There is no tenant {tenant_id}.") from None

    def _refuse_if_taken(self, tenant: Tenant) -> None:
        if self.get(tenant.tenant_id) is not None:
            raise TenantExists(f"The tenant {tenant.tenant_id} already exists.")
        self._refuse_if_email_taken(tenant)

    def _refuse_if_email_taken(self, tenant: Tenant) -> None:
        key = email_key_of(tenant)
        if key is not None and self._connection.get(TENANTS, email_item_key(key)) is not None:
            raise EmailTaken

    def _take_email(self, tenant: Tenant) -> list[dict[str, Any]]:
        key = email_key_of(tenant)
        if key is None:
            return []
        return [{"Put": put(self._table, {**email_item_key(key), "tenant_id": text(tenant.tenant_id)}, _NEW)}]

    def _let_email_go(self, tenant: Tenant) -> list[dict[str, Any]]:
        key = email_key_of(tenant)
        return [] if key is None else [{"Delete": {"TableName": self._table, "Key": email_item_key(key)}}]

    def _write(self, tenant: Tenant, writes: list[dict[str, Any]], audit_entries: Sequence[AuditEntry]) -> None:
        entries = [{"Put": put(self._table, audit_item(tenant.tenant_id, entry))} for entry in audit_entries]
        # A copy from another store may bring more than fit. They come first: if it ends here, it begins here again.
        for entry in entries[:-_MAX_ENTRIES]:
            with suppress(ConditionFailed):
                self._connection.call("put_item", **entry["Put"], ConditionExpression=_NEW)
        self._connection.transact(*writes, *entries[-_MAX_ENTRIES:])
