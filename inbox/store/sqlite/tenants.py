"""Tenants in SQLite."""

import apsw

from inbox.errors import AlreadyExists, NotAllowed
from inbox.store.sqlite.database import Database, Row
from inbox.tenants import Tenant, TenantStatus

_COLUMNS = "tenant_id, name, email, status, created_at_ms"

_INSERT = f"""
    INSERT INTO tenants ({_COLUMNS}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING tenant_id"""

_GET = f"SELECT {_COLUMNS} FROM tenants WHERE tenant_id = ?"

_ALL = f"SELECT {_COLUMNS} FROM tenants ORDER BY tenant_id"


class SQLiteTenants:
    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, tenant: Tenant) -> None:
        row = (tenant.tenant_id, tenant.name, tenant.email, tenant.status, tenant.created_at_ms)

        def act(connection: apsw.Connection) -> None:
            if not connection.execute(_INSERT, row).fetchall():
                raise AlreadyExists(f"There is a tenant {tenant.tenant_id} already.")

        self._database.write(act)

    def get(self, tenant_id: str) -> Tenant | None:
        rows = self._database.read(_GET, (tenant_id,))
        return _tenant(rows[0]) if rows else None

    def shard(self, tenant_id: str, shards: int, now_ms: int) -> None:  # noqa: ARG002 - as the port has it
        raise NotAllowed("The embedded store is one file: there are no partitions to spread events over.")

    def all(self) -> list[Tenant]:
        return [_tenant(row) for row in self._database.read(_ALL)]


def _tenant(row: Row) -> Tenant:
    tenant_id, name, email, status, created_at_ms = row
    return Tenant(tenant_id, name, email, TenantStatus(status), created_at_ms)
