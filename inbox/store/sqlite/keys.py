"""API keys in SQLite."""

import apsw

from authorizer.resolver import KeyRecord, Principal
from inbox.errors import NotFound
from inbox.store.sqlite.database import Database, Row
from inbox.tenants import ApiKey, KeyStatus, Scope, TenantStatus

_COLUMNS = "key_id, key_hash, tenant_id, name, scopes, status, created_at_ms, expires_at_ms"

_INSERT = f"INSERT INTO api_keys ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

_OF_TENANT = f"SELECT {_COLUMNS} FROM api_keys WHERE tenant_id = ? ORDER BY created_at_ms, key_id"

_FIND = """
    SELECT tenant_id, tenants.name, tenants.status, key_id, scopes, expires_at_ms
    FROM api_keys JOIN tenants USING (tenant_id)
    WHERE key_hash = ? AND api_keys.status = 'active'"""

_REVOKE = "UPDATE api_keys SET status = 'revoked' WHERE key_id = ? RETURNING key_id"


class SQLiteKeys:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, key: ApiKey) -> None:
        row = (
            key.key_id,
            key.key_hash,
            key.tenant_id,
            key.name,
            " ".join(sorted(key.scopes)),
            key.status,
            key.created_at_ms,
            key.expires_at_ms,
        )

        def act(connection: apsw.Connection) -> None:
            if not connection.execute("SELECT 1 FROM tenants WHERE tenant_id = ?", (key.tenant_id,)).fetchone():
                raise NotFound(f"There is no tenant {key.tenant_id}.")
            connection.execute(_INSERT, row)

        self._database.write(act)

    def find(self, key_hash: str) -> KeyRecord | None:
        rows = self._database.read(_FIND, (key_hash,))
        if not rows:
            return None
        tenant_id, tenant_name, tenant_status, key_id, scopes, expires_at_ms = rows[0]
        active = tenant_status == TenantStatus.ACTIVE
        principal = Principal(tenant_id, tenant_name, active, key_id, frozenset(scopes.split()))
        return KeyRecord(principal, expires_at_ms)

    def of_tenant(self, tenant_id: str) -> list[ApiKey]:
        return [_key(row) for row in self._database.read(_OF_TENANT, (tenant_id,))]

    def revoke(self, key_id: str) -> bool:
        return self._database.write(lambda connection: bool(connection.execute(_REVOKE, (key_id,)).fetchall()))


def _key(row: Row) -> ApiKey:
    key_id, key_hash, tenant_id, name, scopes, status, created_at_ms, expires_at_ms = row
    return ApiKey(
        key_id=key_id,
        key_hash=key_hash,
        tenant_id=tenant_id,
        name=name,
        scopes=frozenset(Scope(scope) for scope in scopes.split()),
        status=KeyStatus(status),
        created_at_ms=created_at_ms,
        expires_at_ms=expires_at_ms,
    )
