"""Tenants and their audit log. Pure.

Status transitions; an admin can force any other:

    UNVALIDATED ─▶ VALIDATED ─▶ REGISTERED        each ⇄ SUSPENDED

Deleting a tenant only clears `active`, so it can be restored.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from inbox.domain.timestamps import format_timestamp

SYSTEM_TENANT = "system"
MAX_NAME = 200
MAX_RATE_LIMIT = 1_000_000
TENANT_ID = "[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
TENANT_ID_RULE = "1 to 63 characters of A-Z, a-z, 0-9 and . _ -, starting with a letter or digit"
EMAIL = r"[^@\s]{1,64}@[^@\s]{1,189}"


class TenantStatus(StrEnum):
    UNVALIDATED = "UNVALIDATED"
    VALIDATED = "VALIDATED"
    REGISTERED = "REGISTERED"
    SUSPENDED = "SUSPENDED"


# A suspended tenant returns to its previous status; see `status_after_resume`.
_TRANSITIONS = {
    TenantStatus.UNVALIDATED: (TenantStatus.VALIDATED, TenantStatus.SUSPENDED),
    TenantStatus.VALIDATED: (TenantStatus.REGISTERED, TenantStatus.SUSPENDED),
    TenantStatus.REGISTERED: (TenantStatus.SUSPENDED,),
}


class TenantPosition(NamedTuple):
    """A position in the list of tenants: newest first, then by tenant ID."""

    created_at_ms: int
    tenant_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """`version` counts changes, from 1 on. `rate_limit` is in requests per second; None means the service's default.

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
    def has_access(self) -> bool:
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
    def position(self) -> TenantPosition:
        return TenantPosition(self.created_at_ms, self.tenant_id)


@dataclass(frozen=True, slots=True)
class TenantSelection:
    """Tenants with `status`, created at or after `since_ms` and before `until_ms`. None selects all."""

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
    """One change of a tenant. `number` is the tenant's version after it, `by` the key ID or name of its author."""

    number: int
    at_ms: int
    by: str
    action: AuditAction
    changes: Mapping[str, Change]
    forced: bool = False


def is_name(text: str) -> bool:
    """Returns True if `text` can name an organization or a key."""
    return len(text) <= MAX_NAME and text.isprintable()


def is_tenant_id(text: str) -> bool:
    """Returns True for a valid tenant ID, which contains no character that separates the parts of a store's key."""
    return re.fullmatch(TENANT_ID, text) is not None


def is_email(text: str) -> bool:
    return re.fullmatch(EMAIL, text) is not None and text.isprintable()


def email_key(email: str) -> str:
    """Returns the form in which email addresses are compared."""
    # Not casefold(): it treats `straße` and `strasse` as equal.
    return email.lower()


def tenant_document(tenant: Tenant) -> dict[str, Any]:
    """Returns the tenant as the API and the commands show it."""
    document = {
        "tenant_id": tenant.tenant_id,
        "organization_name": tenant.organization_name,
        "email": tenant.email,
        "destination_email": tenant.destination_email,
        "rate_limit": tenant.rate_limit,
        "status": tenant.status,
        "active": tenant.active,
        "date_created": format_timestamp(tenant.created_at_ms),
        "date_last_updated": format_timestamp(tenant.updated_at_ms),
        "last_updated_by": tenant.updated_by,
    }
    if tenant.status is TenantStatus.SUSPENDED:
        document["status_before_suspension"] = tenant.status_after_resume
    return document


def audit_document(entry: AuditEntry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "at": format_timestamp(entry.at_ms),
        "by": entry.by,
        "action": entry.action,
        "forced": entry.forced,
        "changes": {name: {"from": change.before, "to": change.after} for name, change in entry.changes.items()},
    }
