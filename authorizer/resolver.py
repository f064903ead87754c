"""Resolves an API key into what is known of it: whose it is, and what it may do."""

from collections.abc import Callable
from dataclasses import dataclass

from authorizer import apikey


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling, and what they may do. `rate_limit` is the tenant's own, in requests a second; 0 is none."""

    tenant_id: str
    tenant_name: str
    tenant_active: bool
    key_id: str
    scopes: frozenset[str]
    rate_limit: int | None = None


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A stored key that is not revoked, together with its tenant."""

    principal: Principal
    expires_at_ms: int | None = None
    last_used_at_ms: int | None = None

    def has_expired(self, now_ms: int) -> bool:
        return self.expires_at_ms is not None and self.expires_at_ms <= now_ms


FindKey = Callable[[str], KeyRecord | None]
"""Asks the store for a key by its hash; None for an unknown or revoked one."""


def resolve(key: str, find: FindKey, now_ms: int) -> KeyRecord | None:
    """None for a key that is malformed, unknown, revoked or expired."""
    # A made-up key stops here, and costs no call.
    record = find(apikey.hash_of(key)) if apikey.is_well_formed(key) else None
    return None if record is None or record.has_expired(now_ms) else record
