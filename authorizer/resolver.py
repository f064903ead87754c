"""Resolves an API key to its tenant and scopes."""

from collections.abc import Callable
from dataclasses import dataclass

from authorizer import apikey


@dataclass(frozen=True, slots=True)
class Principal:
    """The tenant and key of a request. `rate_limit` is the tenant's own, in requests per second; 0 means unlimited."""

    tenant_id: str
    tenant_name: str
    tenant_active: bool
    key_id: str
    scopes: frozenset[str]
    rate_limit: int | None = None


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A stored key that is not revoked, with its tenant."""

    principal: Principal
    expires_at_ms: int | None = None
    last_used_at_ms: int | None = None

    def has_expired(self, now_ms: int) -> bool:
        return self.expires_at_ms is not None and self.expires_at_ms <= now_ms


def resolve(key: str, find: Callable[[str], KeyRecord | None], now_ms: int) -> KeyRecord | None:
    """Returns the key, or None if it is malformed, unknown, revoked or expired. `find` reads a key by its hash."""
    record = find(apikey.hash_of(key)) if apikey.is_well_formed(key) else None
    return None if record is None or record.has_expired(now_ms) else record
