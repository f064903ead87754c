"""Tenants in DynamoDB, with their e-mails and audit trails."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from inbox.domain.tenants import AuditEntry, Tenant, TenantPosition, TenantSelection, email_key
from inbox.errors import EmailTaken, NotFound, TenantExists
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.faults import ConditionFailed
from inbox.store.dynamodb.layout import (
    TENANTS,
    audit_range,
    email_item_key,
    number,
    tenant_key,
    text,
)
from inbox.store.dynamodb.shards import NOTICE_MS, Sharding
from inbox.store.dynamodb.tenant_items import attributes_of, audit_item, email_key_of, to_audit_entry, to_tenant
from inbox.store.dynamodb.tenant_list import TenantList
from inbox.store.dynamodb.transactions import put, update

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
            raise TenantExists(f"There is a tenant {tenant.tenant_id} already.")
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
