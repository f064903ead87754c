"""Moving from one store to another, while both are in use or neither is."""

from collections.abc import Callable
from dataclasses import dataclass, field

from inbox.domain.keys import KeyStatus
from inbox.domain.tenants import Tenant
from inbox.errors import EmailTaken, NotAllowed
from inbox.store.interface import SourceStore, TargetStore

_AT_A_TIME = 100


@dataclass(slots=True)
class CopyResult:
    tenants: int = 0
    keys: int = 0
    inboxes: int = 0
    events: int = 0
    written: int = 0
    too_large: list[str] = field(default_factory=list)


class StoreCopy:
    """Safe to repeat: a second run brings over what has come or been delivered since the first."""

    def __init__(self, source: SourceStore, target: TargetStore, now_ms: Callable[[], int]) -> None:
        self._source = source
        self._target = target
        self._now_ms = now_ms

    def count(self) -> int:
        """How many events there are to look at."""
        tenants = self._source.tenants.all()
        return sum(self._source.events.count(tenant.tenant_id, self._now_ms()) for tenant in tenants)

    def copy(self, on_progress: Callable[[int], object]) -> CopyResult:
        """Copies everything. `on_progress` hears of each number of events that are done."""
        copied = CopyResult()
        tenants = self._source.tenants.all()
        self._copy_tenants(tenants)
        for tenant in tenants:
            copied.tenants += 1
            self._copy_keys(tenant.tenant_id, copied)
            self._copy_default(tenant.tenant_id)
            # Before the events, because an event's copy needs its inbox.
            for inbox in self._source.inboxes.all(tenant.tenant_id):
                self._target.inboxes.save(tenant.tenant_id, inbox)
                copied.inboxes += 1
            self._copy_events(tenant.tenant_id, copied, on_progress)
        return copied

    def _copy_tenants(self, tenants: list[Tenant]) -> None:
        # Where an e-mail has gone from one tenant to another, the first has to let go of it here too.
        waiting = [tenant for tenant in tenants if not self._copy_tenant(tenant)]
        for tenant in waiting:
            if not self._copy_tenant(tenant):
                raise NotAllowed(f"The e-mail of {tenant.tenant_id} is another tenant's: give it a new one first.")

    def _copy_tenant(self, tenant: Tenant) -> bool:
        """Whether its e-mail was free. A tenant that was changed more often in the target stays as it is there."""
        there = self._target.tenants.get(tenant.tenant_id)
        version = 0 if there is None else there.version
        newest_first = self._source.tenants.audit_log(tenant.tenant_id, tenant.version, tenant.version + 1)
        audit_entries = [entry for entry in reversed(newest_first) if entry.number > version]
        try:
            if there is None:
                self._target.tenants.create(tenant, audit_entries)
            elif version < tenant.version:
                self._target.tenants.update(tenant, version, audit_entries)
        except EmailTaken:
            return False
        return True

    def _copy_keys(self, tenant_id: str, copied: CopyResult) -> None:
        there = {key.key_id for key in self._target.keys.all(tenant_id)}
        for key in self._source.keys.all(tenant_id):
            copied.keys += 1
            if key.key_id not in there:
                self._target.keys.create(key)
                continue
            if key.status is KeyStatus.REVOKED:
                self._target.keys.revoke(key.key_id)
            elif key.expires_at_ms is not None:
                self._target.keys.expire(key.key_id, key.expires_at_ms)
            if key.last_used_at_ms is not None:
                self._target.keys.record_use(key.key_hash, key.last_used_at_ms)

    def _copy_default(self, tenant_id: str) -> None:
        enabled = self._source.inboxes.is_default_enabled(tenant_id)
        # A store may take a second to change it.
        if enabled != self._target.inboxes.is_default_enabled(tenant_id):
            self._target.inboxes.set_default_enabled(tenant_id, enabled)

    def _copy_events(self, tenant_id: str, copied: CopyResult, on_progress: Callable[[int], object]) -> None:
        after = 0
        while records := self._source.events.export_events(tenant_id, after, _AT_A_TIME, self._now_ms()):
            adopted = self._target.events.import_events(tenant_id, records, self._now_ms())
            copied.events += len(records)
            copied.written += adopted.written
            copied.too_large += adopted.too_large
            after = records[-1].number
            on_progress(len(records))
