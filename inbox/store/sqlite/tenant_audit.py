"""A tenant's audit trail in SQLite."""

import json
from collections.abc import Sequence

import apsw

from inbox.domain.tenants import AuditAction, AuditEntry, Change
from inbox.store.sqlite.database import Database, Row

_INSERT = """
    INSERT INTO tenant_audit (tenant_id, number, at_ms, by, action, changes, forced) VALUES (?, ?, ?, ?, ?, ?, ?)"""

NEWEST = """
    SELECT number, at_ms, by, action, changes, forced FROM tenant_audit
    WHERE tenant_id = :tenant_id AND number < :before ORDER BY number DESC LIMIT :limit"""

_BEHIND_ALL = 2**63 - 1


def append(connection: apsw.Connection, tenant_id: str, audit_entries: Sequence[AuditEntry]) -> None:
    connection.executemany(
        _INSERT,
        [
            (
                tenant_id,
                entry.number,
                entry.at_ms,
                entry.by,
                entry.action,
                json.dumps(dict(entry.changes)),
                entry.forced,
            )
            for entry in audit_entries
        ],
    )


def newest(database: Database, tenant_id: str, limit: int, before: int | None) -> list[AuditEntry]:
    place = {"tenant_id": tenant_id, "before": _BEHIND_ALL if before is None else before, "limit": limit}
    return [_entry(row) for row in database.read(NEWEST, place)]


def _entry(row: Row) -> AuditEntry:
    number, at_ms, by, action, changes, forced = row
    return AuditEntry(
        number=number,
        at_ms=at_ms,
        by=by,
        action=AuditAction(action),
        changes={member: Change(*change) for member, change in json.loads(changes).items()},
        forced=bool(forced),
    )
