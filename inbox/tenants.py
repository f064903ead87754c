"""Tenants, their keys and inboxes, and what a key may do. Pure."""

import re
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

SYSTEM_TENANT = "system"
MOST_INBOXES = 50
_TENANT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
INBOX_NAME = "[a-z0-9][a-z0-9-]{0,62}"


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


@dataclass(frozen=True, slots=True)
class Inbox:
    """A named inbox. `event_types` are patterns in which `*` stands for any characters; None takes every event."""

    name: str
    event_types: tuple[str, ...] | None
    created_at_ms: int

    def takes(self, event_type: str | None) -> bool:
        if self.event_types is None:
            return True
        # A type has none of the other characters that mean something to fnmatch.
        return event_type is not None and any(fnmatchcase(event_type, pattern) for pattern in self.event_types)


def is_inbox_name(text: str) -> bool:
    return re.fullmatch(INBOX_NAME, text) is not None


def is_tenant_id(text: str) -> bool:
    """Letters, digits, dot, underscore and hyphen: never a character that separates the parts of a store's key."""
    return _TENANT_ID.fullmatch(text) is not None
