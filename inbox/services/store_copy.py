"""Copying one store to another, while both may be in use."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from inbox.domain.keys import KeyStatus
from inbox.domain.tenants import Tenant
from inbox.errors import EmailTaken, NotAllowed
from inbox.store.interface import Store

_STEP_EVENTS = 100


@dataclass(slots=True)
class CopyResult:
    tenants: int = 0
    keys: int = 0
    inboxes: int = 0
    events: int = 0
    written: int = 0
    too_large: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StoreCopy:
    """Safe to repeat: a second run copies what has changed since the first."""

    source: Store
    target: Store
    now_ms: Callable[[], int]

    def copy(self, on_progress: Callable[[int, int], object]) -> CopyResult:
        """Copies everything. Calls `on_progress` with the percents done, of all tenants together, and their sum."""
        copied = CopyResult()
        tenants = self.source.tenants.all()
        self._copy_tenants(tenants)
        for number, tenant in enumerate(tenants):
            copied.tenants += 1
            self._copy_keys(tenant.tenant_id, copied)
            self._copy_default(tenant.tenant_id)
            # Before the events: an event's copy needs its inbox.
            for inbox in self.source.inboxes.all(tenant.tenant_id):
                self.target.inboxes.save(tenant.tenant_id, inbox)
                copied.inboxes += 1
            for percent in self._copy_events(tenant.tenant_id, copied):
                on_progress(100 * number + percent, 100 * len(tenants))
        return copied

    def _copy_tenants(self, tenants: list[Tenant]) -> None:
        # If an email address has moved from one tenant to another, the first must be updated before the second.
        postponed = [tenant for tenant in tenants if not self._copy_tenant(tenant)]
        for tenant in postponed:
            if not self._copy_tenant(tenant):
                owner = f"The email address of {tenant.tenant_id} belongs to another tenant"
                raise NotAllowed(f"{owner}. Change one of them first.")

    def _copy_tenant(self, tenant: Tenant) -> bool:
        """Returns False if its email address was taken. A tenant with a newer version in the target stays unchanged."""
        existing = self.target.tenants.get(tenant.tenant_id)
        version = 0 if existing is None else existing.version
        newest_first = self.source.tenants.audit_log(tenant.tenant_id, tenant.version, tenant.version + 1)
        audit_entries = [entry for entry in reversed(newest_first) if entry.number > version]
        try:
            if existing is None:
                self.target.tenants.create(tenant, audit_entries)
            elif version < tenant.version:
                self.target.tenants.update(tenant, version, audit_entries)
        except EmailTaken:
            return False
        return True

    def _copy_keys(self, tenant_id: str, copied: CopyResult) -> None:
        existing = {key.key_id for key in self.target.keys.all(tenant_id)}
        for key in self.source.keys.all(tenant_id):
            copied.keys += 1
            if key.key_id not in existing:
                self.target.keys.create(key)
                continue
            if key.status is KeyStatus.REVOKED:
                self.target.keys.revoke(key.key_id)
            elif key.expires_at_ms is not None:
                self.target.keys.expire(key.key_id, key.expires_at_ms)
            if key.last_used_at_ms is not None:
                self.target.keys.record_use(key.key_hash, key.last_used_at_ms)

    def _copy_default(self, tenant_id: str) -> None:
        enabled = self.source.inboxes.is_default_enabled(tenant_id)
        # Only if needed: DynamoDB takes a second to change it.
        if enabled != self.target.inboxes.is_default_enabled(tenant_id):
            self.target.inboxes.set_default_enabled(tenant_id, enabled)

    def _copy_events(self, tenant_id: str, copied: CopyResult) -> Iterator[int]:
        """Yields the percents done after each step, and finally 100."""
        export, done = self.source.events.export_events(tenant_id, self.now_ms()), 0
        while records := list(islice(export.events, _STEP_EVENTS)):
            imported = self.target.events.import_events(tenant_id, records, self.now_ms())
            copied.events += len(records)
            copied.written += imported.written
            copied.too_large += imported.too_large
            done += len(records)
            # Others may have been put since they were counted.
            yield min(100, 100 * done // max(1, export.count))
        yield 100
