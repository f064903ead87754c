"""Tenants and their audit logs in SQLite."""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

import apsw

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
from inbox.errors import EmailTaken, NotAllowed, TenantExists
from inbox.store.sqlite.database import Database, Row

COLUMNS = [field.name for field in fields(Tenant)]

_COLUMNS = ", ".join(COLUMNS)

_VALUES = ", ".join(f":{column}" for column in COLUMNS)

_INSERT = f"INSERT INTO tenants ({_COLUMNS}, email_key) VALUES ({_VALUES}, :email_key)"

_UPDATE = f"UPDATE tenants SET ({_COLUMNS}, email_key) = ({_VALUES}, :email_key) WHERE tenant_id = :tenant_id"

_GET = f"SELECT {_COLUMNS} FROM tenants WHERE tenant_id = ?"

_BY_EMAIL = f"SELECT {_COLUMNS} FROM tenants WHERE email_key = ?"

_ALL = f"SELECT {_COLUMNS} FROM tenants ORDER BY tenant_id"

_INSERT_AUDIT = """
    INSERT INTO tenant_audit (tenant_id, number, at_ms, by, action, changes, forced) VALUES (?, ?, ?, ?, ?, ?, ?)"""

AUDIT_LOG = """
    SELECT number, at_ms, by, action, changes, forced FROM tenant_audit
    WHERE tenant_id = :tenant_id AND number < :before ORDER BY number DESC LIMIT :limit"""

_MAX_INTEGER = 2**63 - 1


class SQLiteTenants:
    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, tenant: Tenant, audit_entries: Sequence[AuditEntry]) -> None:
        def transaction(connection: apsw.Connection) -> None:
            if _stored(connection, tenant.tenant_id) is not None:
                raise TenantExists(tenant.tenant_id)
            if _is_email_taken(connection, tenant):
                raise EmailTaken
            connection.execute(_INSERT, _values(tenant))
            _append_audit(connection, tenant.tenant_id, audit_entries)

        self._database.write(transaction)

    def update(self, tenant: Tenant, version: int, audit_entries: Sequence[AuditEntry]) -> bool:
        def transaction(connection: apsw.Connection) -> bool:
            stored = _stored(connection, tenant.tenant_id)
            if stored is None or stored.version != version:
                return False
            taken = _is_email_taken(connection, tenant)
            # Tenants that shared an email address in an earlier release may keep it.
            if taken and tenant.email != stored.email:
                raise EmailTaken
            connection.execute(_UPDATE, _values(tenant) | ({"email_key": None} if taken else {}))
            _append_audit(connection, tenant.tenant_id, audit_entries)
            return True

        return self._database.write(transaction)

    def get(self, tenant_id: str) -> Tenant | None:
        return self._one(_GET, tenant_id)

    def get_by_email(self, email: str) -> Tenant | None:
        return self._one(_BY_EMAIL, email_key(email))

    def page(self, selection: TenantSelection, limit: int, after: TenantPosition | None) -> list[Tenant]:
        rows = self._database.read(page_statement(selection), page_parameters(selection, limit, after))
        return [tenant_of(row) for row in rows]

    def audit_log(self, tenant_id: str, limit: int, before: int | None) -> list[AuditEntry]:
        parameters = {"tenant_id": tenant_id, "before": _MAX_INTEGER if before is None else before, "limit": limit}
        return [_audit_entry(row) for row in self._database.read(AUDIT_LOG, parameters)]

    def all(self) -> list[Tenant]:
        return [tenant_of(row) for row in self._database.read(_ALL)]

    def shard(self, tenant_id: str, shards: int, now_ms: int) -> None:  # noqa: ARG002 - the interface has them
        raise NotAllowed("`inbox tenants shard` requires DynamoDB.")

    def _one(self, sql: str, value: str) -> Tenant | None:
        rows = self._database.read(sql, (value,))
        return tenant_of(rows[0]) if rows else None


def tenant_of(row: Row) -> Tenant:
    members: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    before = members["status_before_suspension"]
    members |= {
        "status": TenantStatus(members["status"]),
        "status_before_suspension": None if before is None else TenantStatus(before),
        "active": bool(members["active"]),
    }
    return Tenant(**members)


def page_statement(selection: TenantSelection) -> str:
    index = "tenants_by_age" if selection.status is None else "tenants_by_status"
    return f"""
        SELECT {_COLUMNS} FROM tenants INDEXED BY {index}
        WHERE created_at_ms >= :since_ms AND (created_at_ms, tenant_id) < (:before_ms, :before_id)
        {"" if selection.status is None else "AND status = :status"}
        {"" if selection.include_inactive else "AND active"}
        ORDER BY created_at_ms DESC, tenant_id DESC LIMIT :limit"""


def page_parameters(
    selection: TenantSelection, limit: int, after: TenantPosition | None
) -> dict[str, str | int | None]:
    # Tenant IDs are not empty, so an empty one comes before every tenant of its millisecond.
    end = TenantPosition(_MAX_INTEGER, "") if selection.until_ms is None else TenantPosition(selection.until_ms, "")
    before = end if after is None else min(end, after)
    return {
        "status": selection.status,
        "since_ms": selection.since_ms or 0,
        "before_ms": before.created_at_ms,
        "before_id": before.tenant_id,
        "limit": limit,
    }


def _values(tenant: Tenant) -> dict[str, Any]:
    return asdict(tenant) | {"email_key": None if tenant.email is None else email_key(tenant.email)}


def _stored(connection: apsw.Connection, tenant_id: str) -> Tenant | None:
    row = connection.execute(_GET, (tenant_id,)).fetchone()
    return None if row is None else tenant_of(row)


def _is_email_taken(connection: apsw.Connection, tenant: Tenant) -> bool:
    """Returns True if another tenant has the email address."""
    if tenant.email is None:
        return False
    owner = connection.execute(_BY_EMAIL, (email_key(tenant.email),)).fetchone()
    return owner is not None and tenant_of(owner).tenant_id != tenant.tenant_id


def _append_audit(connection: apsw.Connection, tenant_id: str, entries: Sequence[AuditEntry]) -> None:
    connection.executemany(
        _INSERT_AUDIT,
        [
            (tenant_id, each.number, each.at_ms, each.by, each.action, json.dumps(dict(each.changes)), each.forced)
            for each in entries
        ],
    )


def _audit_entry(row: Row) -> AuditEntry:
    number, at_ms, by, action, changes, forced = row
    return AuditEntry(
        number=number,
        at_ms=at_ms,
        by=by,
        action=AuditAction(action),
        changes={member: Change(*change) for member, change in json.loads(changes).items()},
        forced=bool(forced),
    )
