"""Tenants, their keys and inboxes, and what a key may do. Pure.

A tenant's status, which an admin may also force to any other:

    UNVALIDATED ─▶ VALIDATED ─▶ REGISTERED        each ⇄ SUSPENDED

Apart from that it may be deleted, and restored: its row is never removed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import NamedTuple

SYSTEM_TENANT = "system"
MAX_INBOXES = 50
MAX_KEYS = 100
"""That work at the same time; and as many that no longer do are remembered."""
MAX_OVERLAP_SECONDS = 30 * 86_400
MAX_NAME = 200
MAX_RATE_LIMIT = 1_000_000
TENANT_ID = "[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
EMAIL = r"[^@\s]{1,64}@[^@\s]{1,189}"
INBOX_NAME = "[a-z0-9][a-z0-9-]{0,62}"
KEY_ID = "key_[0-9a-f]{16}"


class Scope(StrEnum):
    EVENTS_WRITE = "events:write"
    EVENTS_READ = "events:read"
    INBOX_READ = "inbox:read"
    TENANT_MANAGE = "tenant:manage"
    ADMIN = "admin"


DEFAULT_SCOPES = frozenset({Scope.EVENTS_WRITE, Scope.INBOX_READ})
ALL_BUT_ADMIN = frozenset(Scope) - {Scope.ADMIN}


class TenantStatus(StrEnum):
    UNVALIDATED = "UNVALIDATED"
    VALIDATED = "VALIDATED"
    REGISTERED = "REGISTERED"
    SUSPENDED = "SUSPENDED"


_TRANSITIONS = {
    TenantStatus.UNVALIDATED: (TenantStatus.VALIDATED, TenantStatus.SUSPENDED),
    TenantStatus.VALIDATED: (TenantStatus.REGISTERED, TenantStatus.SUSPENDED),
    TenantStatus.REGISTERED: (TenantStatus.SUSPENDED,),
}


class KeyStatus(StrEnum):
    """What is stored is never EXPIRED: that comes by itself."""

    ACTIVE = "active"
    REVOKED = "revoked"
    EXPIRED = "expired"


class TenantPosition(NamedTuple):
    """Where a tenant stands in the list of all: the newest first, those of one millisecond by their ids."""

    created_at_ms: int
    tenant_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """`version` counts its changes, from 1 on. `rate_limit` is in requests a second; None leaves it to the service.

    `status_before_suspension` is only set on a suspended tenant. Earlier releases did not record it.
    """

    tenant_id: str
    organization_name: str | None = None
    email: str | None = None
    destination_email: str | None = None
    rate_limit: int | None = None
    status: TenantStatus
    status_before_suspension: TenantStatus | None = None
    active: bool = True
    created_at_ms: int
    updated_at_ms: int
    updated_by: str
    version: int = 1

    @property
    def name(self) -> str:
        return self.organization_name or self.tenant_id

    @property
    def may_call(self) -> bool:
        return self.active and self.status is not TenantStatus.SUSPENDED

    @property
    def status_after_resume(self) -> TenantStatus:
        if self.status is not TenantStatus.SUSPENDED:
            return self.status
        return self.status_before_suspension or TenantStatus.REGISTERED

    @property
    def allowed_statuses(self) -> tuple[TenantStatus, ...]:
        """Returns the statuses that the tenant can change to without force."""
        return _TRANSITIONS.get(self.status, (self.status_after_resume,))

    @property
    def place(self) -> TenantPosition:
        return TenantPosition(self.created_at_ms, self.tenant_id)


@dataclass(frozen=True, slots=True)
class TenantSelection:
    """Those of a status, created from `since_ms` on and before `until_ms`; deleted ones only where asked for."""

    status: TenantStatus | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    include_inactive: bool = False


class AuditAction(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    STATUS_CHANGED = "status_changed"
    DELETED = "deleted"
    RESTORED = "restored"
    KEY_CREATED = "key_created"


class Change(NamedTuple):
    before: str | int | None
    after: str | int | None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """What made a tenant's version of that number: who, when, and which of its members it changed."""

    number: int
    at_ms: int
    by: str
    action: AuditAction
    changes: Mapping[str, Change]
    forced: bool = False


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is known of a key; the key itself is not.

    `lifetime_ms` is how long it was made for: one that was rotated expires earlier.
    """

    key_id: str
    key_hash: str
    tenant_id: str
    name: str
    scopes: frozenset[Scope]
    status: KeyStatus
    created_at_ms: int
    expires_at_ms: int | None
    lifetime_ms: int | None = None
    hint: str | None = None
    last_used_at_ms: int | None = None

    def as_of(self, now_ms: int) -> "ApiKey":
        has_expired = self.expires_at_ms is not None and self.expires_at_ms <= now_ms
        return replace(self, status=KeyStatus.EXPIRED) if has_expired and self.status is KeyStatus.ACTIVE else self


@dataclass(frozen=True, slots=True)
class Inbox:
    """An inbox. `event_types` are patterns in which `*` stands for any characters; None takes every event.

    Only `default` can be off.
    """

    name: str
    event_types: tuple[str, ...] | None
    created_at_ms: int
    enabled: bool = True

    def takes(self, event_type: str | None) -> bool:
        if self.event_types is None:
            return True
        # A type has none of the other characters that mean something to fnmatch.
        return event_type is not None and any(fnmatchcase(event_type, pattern) for pattern in self.event_types)


def is_inbox_name(text: str) -> bool:
    return re.fullmatch(INBOX_NAME, text) is not None


def is_key_id(text: str) -> bool:
    return re.fullmatch(KEY_ID, text) is not None


def is_name(text: str) -> bool:
    """Of an organisation, or what a key is for."""
    return len(text) <= MAX_NAME and text.isprintable()


def is_tenant_id(text: str) -> bool:
    """Letters, digits, dot, underscore and hyphen: never a character that separates the parts of a store's key."""
    return re.fullmatch(TENANT_ID, text) is not None


def is_email(text: str) -> bool:
    """Whether mail could be sent there; nobody but the mail server can say more."""
    return re.fullmatch(EMAIL, text) is not None and text.isprintable()


def email_key(email: str) -> str:
    """What two e-mail addresses have in common that are the same."""
    # Not casefold(), to which `straße` and `strasse` are the same.
    return email.lower()
