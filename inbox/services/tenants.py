"""Creating and changing tenants, with an audit log of every change."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from inbox.domain.tenants import (
    MAX_NAME,
    SYSTEM_TENANT,
    TENANT_ID_RULE,
    AuditAction,
    AuditEntry,
    Change,
    Tenant,
    TenantPosition,
    TenantSelection,
    TenantStatus,
    is_email,
    is_name,
    is_tenant_id,
)
from inbox.errors import EmailTaken, InvalidStatusTransition, NotAllowed, NotFound, StoreUnavailable, TenantExists
from inbox.store.interface import TenantStore

# An update is repeated when another request has changed the tenant between reading and writing.
_MAX_TRIES = 50


def find_tenant(tenants: TenantStore, tenant_id: str) -> Tenant:
    found = tenants.get(tenant_id) if is_tenant_id(tenant_id) else None
    if found is None:
        raise NotFound("tenant")
    return found


@dataclass(frozen=True, slots=True)
class TenantService:
    """`by` is the key ID or name that the audit log shows as the author of a change."""

    tenants: TenantStore
    now_ms: Callable[[], int]

    def create(
        self, by: str, tenant_id: str | None = None, *, status: TenantStatus = TenantStatus.UNVALIDATED, **members: Any
    ) -> Tenant:
        """Creates a tenant, with a random ID unless one is given. Raises TenantExists or EmailTaken."""
        tenant_id = tenant_id or f"tenant_{uuid.uuid4()}"
        if not is_tenant_id(tenant_id):
            raise NotAllowed(f"`tenant_id` must be {TENANT_ID_RULE}.")
        _validate(members)
        now_ms = self.now_ms()
        tenant = Tenant(
            tenant_id=tenant_id, status=status, created_at_ms=now_ms, updated_at_ms=now_ms, updated_by=by, **members
        )
        given = {"status": status, **members}
        changes = {name: Change(None, value) for name, value in given.items() if value is not None}
        self.tenants.create(tenant, [AuditEntry(tenant.version, now_ms, by, AuditAction.CREATED, changes)])
        return tenant

    def find_or_create(self, by: str, email: str, **members: Any) -> tuple[Tenant, bool]:
        """Returns the tenant with that email address, and True if it was created for it."""
        tenant = self.tenants.get_by_email(email)
        if tenant is None:
            try:
                return self.create(by, email=email, **members), True
            except (TenantExists, EmailTaken):
                # Another request may have created a tenant with this email address at the same time.
                tenant = self.tenants.get_by_email(email)
                if tenant is None:
                    raise
        return tenant, False

    def get(self, tenant_id: str) -> Tenant:
        return find_tenant(self.tenants, tenant_id)

    def page(self, selection: TenantSelection, limit: int, after: TenantPosition | None) -> tuple[list[Tenant], bool]:
        """Returns up to `limit` tenants, newest first, and True if there are more."""
        tenants = self.tenants.page(selection, limit + 1, after)
        return tenants[:limit], len(tenants) > limit

    def all(self) -> list[Tenant]:
        return self.tenants.all()

    def update(self, tenant_id: str, by: str, **members: Any) -> Tenant:
        """Changes members of the tenant. Raises EmailTaken if another tenant has the email address."""
        _validate(members)
        return self._change(tenant_id, by, AuditAction.UPDATED, lambda _: members)

    def set_status(self, tenant_id: str, by: str, status: TenantStatus, *, force: bool = False) -> Tenant:
        """Changes the status. Raises InvalidStatusTransition if it is not allowed, unless `force` is True."""
        if status is TenantStatus.SUSPENDED:
            _refuse_system_tenant(tenant_id)

        def members(tenant: Tenant) -> dict[str, Any]:
            if tenant.status is not status and status not in tenant.allowed_statuses and not force:
                raise InvalidStatusTransition(
                    f"Cannot change status from {tenant.status} to {status}. "
                    f"Allowed: {', '.join(tenant.allowed_statuses)}."
                )
            return {"status": status}

        return self._change(tenant_id, by, AuditAction.STATUS_CHANGED, members)

    def resume(self, tenant_id: str, by: str) -> Tenant:
        """Restores the status before the suspension. Any other tenant stays unchanged."""
        return self._change(
            tenant_id, by, AuditAction.STATUS_CHANGED, lambda tenant: {"status": tenant.status_after_resume}
        )

    def delete(self, tenant_id: str, by: str) -> Tenant:
        """Marks the tenant as deleted: its keys stop working. Its data stays, and `restore` reverts it."""
        _refuse_system_tenant(tenant_id)
        return self._change(tenant_id, by, AuditAction.DELETED, lambda _: {"active": False})

    def restore(self, tenant_id: str, by: str) -> Tenant:
        return self._change(tenant_id, by, AuditAction.RESTORED, lambda _: {"active": True})

    def record_key_creation(self, tenant_id: str, by: str, key_id: str) -> None:
        """Adds an audit entry for a key that was not created by the tenant itself."""
        self._change(tenant_id, by, AuditAction.KEY_CREATED, lambda _: {}, key_id)

    def audit(self, tenant_id: str, limit: int, before: int | None = None) -> tuple[list[AuditEntry], bool]:
        """Returns up to `limit` audit entries, newest first, and True if there are older ones."""
        self.get(tenant_id)
        entries = self.tenants.audit_log(tenant_id, limit + 1, before)
        return entries[:limit], len(entries) > limit

    def shard(self, tenant_id: str, shards: int) -> None:
        self.tenants.shard(tenant_id, shards, self.now_ms())

    def _change(
        self,
        tenant_id: str,
        by: str,
        action: AuditAction,
        new_members: Callable[[Tenant], dict[str, Any]],
        key_id: str | None = None,
    ) -> Tenant:
        for _ in range(_MAX_TRIES):
            tenant = self.get(tenant_id)
            members = new_members(tenant)
            changes = {
                name: Change(getattr(tenant, name), value)
                for name, value in members.items()
                if getattr(tenant, name) != value
            }
            if key_id is not None:
                changes["key_id"] = Change(None, key_id)
            if not changes:
                return tenant
            # After `changes`: the audit log shows only the status.
            if "status" in changes:
                is_suspended = members["status"] is TenantStatus.SUSPENDED
                members = members | {"status_before_suspension": tenant.status if is_suspended else None}
            now_ms, version = self.now_ms(), tenant.version + 1
            changed = replace(tenant, **members, updated_at_ms=now_ms, updated_by=by, version=version)
            forced = "status" in changes and changed.status not in tenant.allowed_statuses
            if self.tenants.update(changed, tenant.version, [AuditEntry(version, now_ms, by, action, changes, forced)]):
                return changed
        raise StoreUnavailable("Too many requests changed the tenant at the same time. Try again.")


def _validate(members: dict[str, Any]) -> None:
    for member in ("email", "destination_email"):
        if members.get(member) is not None and not is_email(members[member]):
            raise NotAllowed(f"`{member}` must be an email address.")
    name: str | None = members.get("organization_name")
    if name is not None and not (name and is_name(name)):
        raise NotAllowed(f"`name` must be 1 to {MAX_NAME} printable characters.")


def _refuse_system_tenant(tenant_id: str) -> None:
    if tenant_id == SYSTEM_TENANT:
        raise NotAllowed(f"The tenant {SYSTEM_TENANT} holds the admin keys. It cannot be suspended or deleted.")
