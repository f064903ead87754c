"""Tenants, their keys, and what a key may do. Pure."""

import re
from dataclasses import dataclass
from enum import StrEnum

SYSTEM_TENANT = "system"
_TENANT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)


class Scope(StrEnum):
    EVENTS_WRITE = "events:write"
    INBOX_READ = "inbox:read"
    TENANT_MANAGE = "tenant:manage"
    ADMIN = "admin"


DEFAULT_SCOPES = frozenset({Scope.EVENTS_WRITE, Scope.INBOX_READ})


class TenantStatus(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"


class KeyStatus(StrEnum):
    ACTIVE = "active"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Tenant:
    tenant_id: str
    name: str
    email: str | None
    status: TenantStatus
    created_at_ms: int


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is known of a key; the key itself is not."""

    key_id: str
    key_hash: str
    tenant_id: str
    name: str
    scopes: frozenset[Scope]
    status: KeyStatus
    created_at_ms: int
    expires_at_ms: int | None


def is_tenant_id(text: str) -> bool:
    """Letters, digits, dot, underscore and hyphen: never a character that separates the parts of a store's key."""
    return _TENANT_ID.fullmatch(text) is not None
