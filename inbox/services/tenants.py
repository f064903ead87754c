"""The registry of tenants: their lives, and an audit trail of every change."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from inbox.domain.tenants import (
    MAX_NAME,
    SYSTEM_TENANT,
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

# Each time that somebody else changes the tenant between our reading and our writing it is tried again.
_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class _Decision:
    """What is to become of a tenant.

    `also` are further changes for the audit log, `unaudited` further members that the audit log does not list.
    """

    action: AuditAction
    members: dict[str, Any] = field(default_factory=dict)
    forced: bool = False
    also: dict[str, Change] = field(default_factory=dict)
    unaudited: dict[str, Any] = field(default_factory=dict)


def find_tenant(tenants: TenantStore, tenant_id: str) -> Tenant:
    found = tenants.get(tenant_id) if is_tenant_id(tenant_id) else None
    if found is None:
        raise NotFound("There is no tenant of that id.")
    return found


class TenantService:
    """`by` is who does it, as the audit trail names them."""

    def __init__(self, tenants: TenantStore, now_ms: Callable[[], int]) -> None:
        self._tenants = tenants
        self._now_ms = now_ms

    def create(
        self, by: str, tenant_id: str | None = None, *, status: TenantStatus = TenantStatus.UNVALIDATED, **members: Any
    ) -> Tenant:
        """A new tenant, with an id of its own where none is given. AlreadyExists or EmailTaken where it cannot be."""
        tenant_id = tenant_id or f"tenant_{uuid.uuid4()}"
        if not is_tenant_id(tenant_id):
            raise NotAllowed(
                "A tenant's id is 1 to 63 letters, digits, dots, underscores and hyphens, the first a letter or digit."
            )
        _check(members)
        now_ms = self._now_ms()
        tenant = Tenant(
            tenant_id=tenant_id, status=status, created_at_ms=now_ms, updated_at_ms=now_ms, updated_by=by, **members
        )
        given = {"status": status, **members}
        changes = {name: Change(None, value) for name, value in given.items() if value is not None}
        self._tenants.create(tenant, [AuditEntry(tenant.version, now_ms, by, AuditAction.CREATED, changes)])
        return tenant

    def find_or_create(self, by: str, email: str, **members: Any) -> tuple[Tenant, bool]:
        """The tenant of that e-mail, made where there is none; and whether it is new."""
        tenant = self._tenants.get_by_email(email)
        if tenant is None:
            try:
                return self.create(by, email=email, **members), True
            except (TenantExists, EmailTaken):
                # Either the id is somebody else's, or another one was faster with the same e-mail.
                tenant = self._tenants.get_by_email(email)
                if tenant is None:
                    raise
        return tenant, False

    def get(self, tenant_id: str) -> Tenant:
        return find_tenant(self._tenants, tenant_id)

    def page(self, selection: TenantSelection, limit: int, after: TenantPosition | None) -> tuple[list[Tenant], bool]:
        """At most so many tenants, the newest first, and whether there are more."""
        tenants = self._tenants.page(selection, limit + 1, after)
        return tenants[:limit], len(tenants) > limit

    def all(self) -> list[Tenant]:
        return self._tenants.all()

    def update(self, tenant_id: str, by: str, **members: Any) -> Tenant:
        """Gives the tenant another name, e-mail, destination or limit. EmailTaken where the e-mail is another's."""
        _check(members)
        return self._change(tenant_id, by, lambda _: _Decision(AuditAction.UPDATED, members))

    def set_status(self, tenant_id: str, by: str, status: TenantStatus, *, force: bool = False) -> Tenant:
        """Changes the status. Raises WrongStep if the transition is not allowed, unless it is forced."""
        if status is TenantStatus.SUSPENDED:
            _spare_system(tenant_id)

        def decide(tenant: Tenant) -> _Decision:
            is_allowed = status in tenant.allowed_statuses
            if tenant.status is not status and not is_allowed and not force:
                raise InvalidStatusTransition(
                    f"Cannot change status from {tenant.status} to {status}. "
                    f"Allowed: {', '.join(tenant.allowed_statuses)}."
                )
            return _status_change(tenant, status, forced=not is_allowed)

        return self._change(tenant_id, by, decide)

    def resume(self, tenant_id: str, by: str) -> Tenant:
        """Returns a suspended tenant to the status before. Any other tenant stays as it is."""
        return self._change(tenant_id, by, lambda tenant: _status_change(tenant, tenant.status_after_resume))

    def delete(self, tenant_id: str, by: str) -> Tenant:
        """Keeps its keys from working, and everything else as it is."""
        _spare_system(tenant_id)
        return self._change(tenant_id, by, lambda _: _Decision(AuditAction.DELETED, {"active": False}))

    def restore(self, tenant_id: str, by: str) -> Tenant:
        return self._change(tenant_id, by, lambda _: _Decision(AuditAction.RESTORED, {"active": True}))

    def record_key_creation(self, tenant_id: str, by: str, key_id: str) -> None:
        """Writes down that somebody else than the tenant made a key for it."""
        made = {"key_id": Change(None, key_id)}
        self._change(tenant_id, by, lambda _: _Decision(AuditAction.KEY_CREATED, also=made))

    def audit(self, tenant_id: str, limit: int, before: int | None = None) -> tuple[list[AuditEntry], bool]:
        """At most so many entries, the newest first, and whether there are older ones."""
        self.get(tenant_id)
        entries = self._tenants.audit_log(tenant_id, limit + 1, before)
        return entries[:limit], len(entries) > limit

    def shard(self, tenant_id: str, shards: int) -> None:
        self._tenants.shard(tenant_id, shards, self._now_ms())

    def _change(self, tenant_id: str, by: str, decide: Callable[[Tenant], _Decision]) -> Tenant:
        for _ in range(_ATTEMPTS):
            tenant = self.get(tenant_id)
            decision = decide(tenant)
            changes = {
                name: Change(getattr(tenant, name), value)
                for name, value in decision.members.items()
                if getattr(tenant, name) != value
            } | decision.also
            if not changes:
                return tenant
            now_ms = self._now_ms()
            changed = replace(
                tenant,
                **decision.members,
                **decision.unaudited,
                updated_at_ms=now_ms,
                updated_by=by,
                version=tenant.version + 1,
            )
            entry = AuditEntry(changed.version, now_ms, by, decision.action, changes, decision.forced)
            if self._tenants.update(changed, tenant.version, [entry]):
                return changed
        raise StoreUnavailable("The tenant is being changed by too many at the same time.")


def _status_change(tenant: Tenant, status: TenantStatus, *, forced: bool = False) -> _Decision:
    before = tenant.status if status is TenantStatus.SUSPENDED else None
    return _Decision(
        AuditAction.STATUS_CHANGED, {"status": status}, forced, unaudited={"status_before_suspension": before}
    )


def _check(members: dict[str, Any]) -> None:
    for name in ("email", "destination_email"):
        if members.get(name) is not None and not is_email(members[name]):
            raise NotAllowed("That is not an e-mail address.")
    called: str | None = members.get("organization_name")
    if called is not None and not (called and is_name(called)):
        raise NotAllowed(f"A name has 1 to {MAX_NAME} printable characters.")


def _spare_system(tenant_id: str) -> None:
    if tenant_id == SYSTEM_TENANT:
        raise NotAllowed(f"The tenant {SYSTEM_TENANT} holds the keys of the admins and cannot be suspended or deleted.")
