"""Creating, listing, rotating and revoking API keys."""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from authorizer import apikey
from inbox.domain.keys import DEFAULT_SCOPES, MAX_KEYS, ApiKey, KeyStatus, Scope, is_key_id
from inbox.domain.tenants import MAX_NAME, SYSTEM_TENANT, is_name
from inbox.errors import FieldError, InvalidRequest, NotAllowed, NotFound, TooManyKeys
from inbox.services.tenants import find_tenant
from inbox.store.interface import KeyStore, TenantStore

_MAX_DELETED = 10


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just created. `key` is its only copy: the store has the hash."""

    key: str
    metadata: ApiKey


@dataclass(frozen=True, slots=True)
class KeyService:
    keys: KeyStore
    tenants: TenantStore
    now_ms: Callable[[], int]

    def create(
        self,
        tenant_id: str,
        name: str = "",
        scopes: Iterable[Scope] = DEFAULT_SCOPES,
        expires_at_ms: int | None = None,
    ) -> NewKey:
        scopes = frozenset(scopes)
        if Scope.ADMIN in scopes and tenant_id != SYSTEM_TENANT:
            raise NotAllowed(f"Only keys of the tenant {SYSTEM_TENANT} can have the scope {Scope.ADMIN}.")
        if not is_name(name):
            raise NotAllowed(f"`name` must be up to {MAX_NAME} printable characters.")
        lifetime_ms = None if expires_at_ms is None else expires_at_ms - self.now_ms()
        if lifetime_ms is not None and lifetime_ms <= 0:
            raise InvalidRequest([FieldError("/expires_at", "`expires_at` must be in the future.")])
        self._make_room(tenant_id)
        new = self._mint(tenant_id, name, scopes, lifetime_ms)
        self.keys.create(new.metadata)
        return new

    def list(self, tenant_id: str) -> list[ApiKey]:
        """Returns every key of the tenant, including revoked and expired ones, oldest first."""
        find_tenant(self.tenants, tenant_id)
        return [key.as_of(self.now_ms()) for key in self.keys.all(tenant_id)]

    def get(self, key_id: str) -> ApiKey:
        key = self.keys.get(key_id) if is_key_id(key_id) else None
        if key is None:
            raise NotFound("key")
        return key

    def get_own(self, tenant_id: str, key_id: str) -> ApiKey:
        """Returns the key. Raises NotFound also if it belongs to another tenant."""
        key = self.get(key_id)
        if key.tenant_id != tenant_id:
            raise NotFound("key")
        return key

    def revoke(self, key_id: str) -> None:
        self.get(key_id)
        self.keys.revoke(key_id)

    def rotate(self, key_id: str, overlap_seconds: int) -> NewKey:
        """Creates a key with the same name, scopes and lifetime. The old key expires after `overlap_seconds`."""
        old = self.get(key_id)
        self._make_room(old.tenant_id)
        new = self._mint(old.tenant_id, old.name, old.scopes, old.lifetime_ms)
        if not self.keys.rotate(key_id, new.metadata, new.metadata.created_at_ms + overlap_seconds * 1000):
            raise NotAllowed("A revoked or expired key cannot be rotated. Create a new one.")
        return new

    def _make_room(self, tenant_id: str) -> None:
        # Concurrent requests may exceed the limit by a few keys, which does no harm.
        keys = self.list(tenant_id)
        inactive = [key for key in keys if key.status is not KeyStatus.ACTIVE]
        if len(keys) - len(inactive) >= MAX_KEYS:
            raise TooManyKeys(MAX_KEYS)
        for key in inactive[:-MAX_KEYS][:_MAX_DELETED]:
            self.keys.delete(key.key_id)

    def _mint(self, tenant_id: str, name: str, scopes: frozenset[Scope], lifetime_ms: int | None) -> NewKey:
        key, now_ms = apikey.mint(), self.now_ms()
        metadata = ApiKey(
            key_id=f"key_{secrets.token_hex(8)}",
            key_hash=apikey.hash_of(key),
            tenant_id=tenant_id,
            name=name,
            scopes=scopes,
            status=KeyStatus.ACTIVE,
            created_at_ms=now_ms,
            expires_at_ms=None if lifetime_ms is None else now_ms + lifetime_ms,
            lifetime_ms=lifetime_ms,
            hint=apikey.hint_of(key),
        )
        return NewKey(key, metadata)
