"""Tenants and their keys, as an operator handles them."""

import secrets
from collections.abc import Callable, Iterable

from authorizer import apikey
from inbox.errors import NotAllowed, NotFound
from inbox.store.port import KeyStore, TenantStore
from inbox.tenants import (
    DEFAULT_SCOPES,
    SYSTEM_TENANT,
    ApiKey,
    KeyStatus,
    Scope,
    Tenant,
    TenantStatus,
    is_tenant_id,
)


class Registry:
    def __init__(self, tenants: TenantStore, keys: KeyStore, now_ms: Callable[[], int]) -> None:
        self._tenants = tenants
        self._keys = keys
        self._now_ms = now_ms

    def create_tenant(self, tenant_id: str, name: str | None = None, email: str | None = None) -> Tenant:
        if not is_tenant_id(tenant_id):
            raise NotAllowed(
                "A tenant's id is 1 to 63 letters, digits, dots, underscores and hyphens, the first a letter or digit."
            )
        tenant = Tenant(tenant_id, name or tenant_id, email, TenantStatus.ACTIVE, self._now_ms())
        self._tenants.create(tenant)
        return tenant

    def tenants(self) -> list[Tenant]:
        return self._tenants.all()

    def shard_tenant(self, tenant_id: str, shards: int) -> None:
        self._tenants.shard(tenant_id, shards, self._now_ms())

    def has_tenant(self, tenant_id: str) -> bool:
        return self._tenants.get(tenant_id) is not None

    def create_key(
        self,
        tenant_id: str,
        name: str = "",
        scopes: Iterable[Scope] = DEFAULT_SCOPES,
        lifetime_seconds: int | None = None,
    ) -> str:
        """A new key, in the only copy there is: what is stored is its hash."""
        scopes = frozenset(scopes)
        if Scope.ADMIN in scopes and tenant_id != SYSTEM_TENANT:
            raise NotAllowed(f"Only keys of the tenant {SYSTEM_TENANT} can have the scope {Scope.ADMIN}.")
        key = apikey.mint()
        created_at_ms = self._now_ms()
        self._keys.add(
            ApiKey(
                key_id=f"key_{secrets.token_hex(8)}",
                key_hash=apikey.hash_of(key),
                tenant_id=tenant_id,
                name=name,
                scopes=scopes,
                status=KeyStatus.ACTIVE,
                created_at_ms=created_at_ms,
                expires_at_ms=None if lifetime_seconds is None else created_at_ms + lifetime_seconds * 1000,
            )
        )
        return key

    def keys(self, tenant_id: str) -> list[ApiKey]:
        if not self.has_tenant(tenant_id):
            raise NotFound(f"There is no tenant {tenant_id}.")
        return self._keys.of_tenant(tenant_id)

    def revoke_key(self, key_id: str) -> None:
        if not self._keys.revoke(key_id):
            raise NotFound(f"There is no key {key_id}.")
