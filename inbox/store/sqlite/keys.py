"""API keys in SQLite."""

from dataclasses import asdict, fields
from typing import Any

import apsw

from authorizer.resolver import KeyRecord, Principal
from inbox.domain.keys import ApiKey, KeyStatus, Scope
from inbox.errors import NotFound
from inbox.store.sqlite import tenants
from inbox.store.sqlite.database import Database, Row

_FIELDS = [field.name for field in fields(ApiKey)]
_COLUMNS = ", ".join(_FIELDS)

_INSERT = f"INSERT INTO api_keys ({_COLUMNS}) VALUES ({', '.join(f':{name}' for name in _FIELDS)})"

_GET = f"SELECT {_COLUMNS} FROM api_keys WHERE key_id = ?"

_ALL = f"SELECT {_COLUMNS} FROM api_keys WHERE tenant_id = ? ORDER BY created_at_ms, key_id"

_TENANT_COLUMNS = ", ".join(f"tenants.{column}" for column in tenants.COLUMNS)

_FIND = f"""
    SELECT key_id, scopes, expires_at_ms, last_used_at_ms, {_TENANT_COLUMNS}
    FROM api_keys JOIN tenants USING (tenant_id)
    WHERE key_hash = ? AND api_keys.status = 'active'"""

_REVOKE = "UPDATE api_keys SET status = 'revoked' WHERE key_id = ? RETURNING key_id"

_EXPIRE = """
    UPDATE api_keys SET expires_at_ms = min(ifnull(expires_at_ms, :expires_at_ms), :expires_at_ms)
    WHERE key_id = :key_id AND status = 'active' AND ifnull(expires_at_ms > :now_ms, TRUE) RETURNING key_id"""

_DELETE = "DELETE FROM api_keys WHERE key_id = ?"

_RECORD_USE = """
    UPDATE api_keys SET last_used_at_ms = :now_ms
    WHERE key_hash = :key_hash AND ifnull(last_used_at_ms < :now_ms, TRUE)"""


class SQLiteKeys:
    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, key: ApiKey) -> None:
        def transaction(connection: apsw.Connection) -> None:
            if not connection.execute("SELECT 1 FROM tenants WHERE tenant_id = ?", (key.tenant_id,)).fetchone():
                raise NotFound("tenant")
            connection.execute(_INSERT, _parameters(key))

        self._database.write(transaction)

    def get(self, key_id: str) -> ApiKey | None:
        rows = self._database.read(_GET, (key_id,))
        return _key(rows[0]) if rows else None

    def get_by_hash(self, key_hash: str) -> KeyRecord | None:
        rows = self._database.read(_FIND, (key_hash,))
        if not rows:
            return None
        key_id, scopes, expires_at_ms, last_used_at_ms, *tenant_row = rows[0]
        tenant = tenants.tenant_of(tuple(tenant_row))
        principal = Principal(
            tenant_id=tenant.tenant_id,
            tenant_name=tenant.name,
            tenant_active=tenant.has_access,
            key_id=key_id,
            scopes=frozenset(scopes.split()),
            rate_limit=tenant.rate_limit,
        )
        return KeyRecord(principal, expires_at_ms, last_used_at_ms)

    def all(self, tenant_id: str) -> list[ApiKey]:
        return [_key(row) for row in self._database.read(_ALL, (tenant_id,))]

    def revoke(self, key_id: str) -> bool:
        return self._database.write(lambda connection: bool(connection.execute(_REVOKE, (key_id,)).fetchall()))

    def rotate(self, key_id: str, successor: ApiKey, expires_at_ms: int) -> bool:
        def transaction(connection: apsw.Connection) -> bool:
            expires = _expire(connection, key_id, expires_at_ms, successor.created_at_ms)
            if expires:
                connection.execute(_INSERT, _parameters(successor))
            return expires

        return self._database.write(transaction)

    def expire(self, key_id: str, expires_at_ms: int) -> bool:
        # At -1 ms no key had expired, so that expired keys count as active.
        return self._database.write(lambda connection: _expire(connection, key_id, expires_at_ms, now_ms=-1))

    def delete(self, key_id: str) -> None:
        self._database.write(lambda connection: connection.execute(_DELETE, (key_id,)))

    def record_use(self, key_hash: str, now_ms: int) -> None:
        use = {"key_hash": key_hash, "now_ms": now_ms}
        self._database.write(lambda connection: connection.execute(_RECORD_USE, use))


def _expire(connection: apsw.Connection, key_id: str, expires_at_ms: int, now_ms: int) -> bool:
    """Makes the key expire at `expires_at_ms`, or earlier if it does so already.

    Returns True if the key was active and had not expired at `now_ms`.
    """
    expiry = {"key_id": key_id, "expires_at_ms": expires_at_ms, "now_ms": now_ms}
    return bool(connection.execute(_EXPIRE, expiry).fetchall())


def _parameters(key: ApiKey) -> dict[str, Any]:
    return asdict(key) | {"scopes": " ".join(sorted(key.scopes))}


def _key(row: Row) -> ApiKey:
    key_id, key_hash, tenant_id, name, scopes, status, *times_and_hint = row
    known_scopes = frozenset(Scope(scope) for scope in scopes.split())
    return ApiKey(key_id, key_hash, tenant_id, name, known_scopes, KeyStatus(status), *times_and_hint)
