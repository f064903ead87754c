"""API keys and their scopes. Pure. The key's own format and its hash: authorizer/apikey.py."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from inbox.domain.timestamps import format_timestamp

MAX_KEYS = 100
"""Active keys per tenant. The same number of revoked and expired keys is kept too."""
MAX_OVERLAP_SECONDS = 30 * 86_400
KEY_ID = "key_[0-9a-f]{16}"


class Scope(StrEnum):
    EVENTS_WRITE = "events:write"
    EVENTS_READ = "events:read"
    INBOX_READ = "inbox:read"
    TENANT_MANAGE = "tenant:manage"
    ADMIN = "admin"


DEFAULT_SCOPES = frozenset({Scope.EVENTS_WRITE, Scope.INBOX_READ})
TENANT_SCOPES = frozenset(Scope) - {Scope.ADMIN}


class KeyStatus(StrEnum):
    """Stores never contain EXPIRED: `ApiKey.as_of` derives it from the time."""

    ACTIVE = "active"
    REVOKED = "revoked"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key without its secret.

    `lifetime_ms` is the lifetime that the key was created with; a rotated key expires earlier.
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
        """Returns the key with the status that it has at `now_ms`."""
        has_expired = self.expires_at_ms is not None and self.expires_at_ms <= now_ms
        return replace(self, status=KeyStatus.EXPIRED) if has_expired and self.status is KeyStatus.ACTIVE else self


def is_key_id(text: str) -> bool:
    return re.fullmatch(KEY_ID, text) is not None


def key_document(key: ApiKey) -> dict[str, Any]:
    """Returns the key as the API and the commands show it."""
    return {
        "key_id": key.key_id,
        "name": key.name,
        "hint": key.hint,
        "scopes": sorted(key.scopes),
        "status": key.status,
        "created_at": format_timestamp(key.created_at_ms),
        "last_used_at": None if key.last_used_at_ms is None else format_timestamp(key.last_used_at_ms),
        "expires_at": None if key.expires_at_ms is None else format_timestamp(key.expires_at_ms),
    }
