"""What a call of the store needs, and what a client does after a StoreUnavailable."""

import operator
import uuid
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from inbox.domain.events import (
    DEFAULT_INBOX,
    Event,
    ExportedEvent,
    NewEvent,
    Page,
    Receipt,
    Selection,
    Status,
)
from inbox.domain.inboxes import Inbox
from inbox.domain.keys import ApiKey, KeyStatus, Scope
from inbox.domain.tenants import AuditAction, AuditEntry
from inbox.store.dynamodb import DynamoDBStore
from tests.contract.samples import (
    LATER_S,
    MINUTE,
    NOW,
    creation_entries,
    ids,
    next_version,
    page_of,
    receipts,
    tenant,
)

ACME = tenant(email="ops@acme.example")
RENAMED = next_version(ACME, email="it@acme.example")
ORDERS, INVOICES = Inbox("orders", ("order.*",), NOW), Inbox("invoices", ("invoice.*",), NOW)
KEY = ApiKey("key_1", "1" * 64, ACME.tenant_id, "", frozenset({Scope.INBOX_READ}), KeyStatus.ACTIVE, NOW, None)
SUCCESSOR = replace(KEY, key_id="key_2", key_hash="2" * 64)
ALL, DELIVERED = Selection(), Selection(status=Status.DELIVERED)
LEASE_UNTIL = NOW + MINUTE
_INCOMPRESSIBLE = b64encode(Random(25).randbytes(3_000))
# More than the limit of an audit log that one transaction can write.
LONG_AUDIT_LOG = [AuditEntry(number, NOW, "cli", AuditAction.UPDATED, {}) for number in range(1, 100)]


@dataclass
class Scene:
    """A store that had cached nothing before `Call.prepare`, and what the calls have returned so far."""

    store: DynamoDBStore
    receipts: list[Receipt] = field(default_factory=list)
    delivered: list[str] = field(default_factory=list)


Act = Callable[[Scene], object]


@dataclass(frozen=True)
class Call:
    """`name` is the store's method, and a case if it has several.

    After a StoreUnavailable the client does `repeat`, by default the same call. `is_repeat_right` compares its result
    with that of a call without a fault.
    """

    name: str
    act: Act
    prepare: Act = lambda _scene: None
    repeat: Act | None = None
    is_repeat_right: Callable[[Any, Any], bool] = operator.eq
    is_repeated: bool = True
    """False if clients do not repeat the call. After a StoreUnavailable it may have been carried out in part."""
    list_delivered: bool = True
    """The store's setting."""
    changed_by_repeat: frozenset[str] = frozenset()
    """Attributes that may differ after a repeat from what they are without a fault."""

    @property
    def method(self) -> str:
        return self.name.partition(":")[0]

    @property
    def may_lose_counts(self) -> bool:
        """Returns True if counts may be missing after a fault: see "Counters" in docs/explanation/stores.md."""
        return self.method.startswith("events.") or self.method == "counters.flush"


def new_event(number: int, event_type: str = "order.created") -> NewEvent:
    return NewEvent(str(uuid.UUID(int=number, version=4)), event_type, b'{"n":%d}' % number)


def keyed_event(number: int) -> NewEvent:
    return new_event(number)._replace(fingerprint=b"first")


def large_event(number: int) -> NewEvent:
    """Returns an event whose payload has an item of its own."""
    return new_event(number)._replace(payload=b'{"n":%d,"document":"%s"}' % (number, _INCOMPRESSIBLE))


def put(*events: NewEvent) -> Act:
    return lambda scene: scene.store.events.put(ACME.tenant_id, events, NOW, LATER_S)


def put_new(count: int) -> Act:
    return put(*map(new_event, range(count)))


def put_keyed(count: int) -> Act:
    return put(*map(keyed_event, range(count)))


def create_inboxes(scene: Scene) -> None:
    for inbox in (ORDERS, INVOICES):
        scene.store.inboxes.save(ACME.tenant_id, inbox)


def claim(
    scene: Scene,
    now_ms: int = NOW,
    lease_until_ms: int | None = None,
    attempt: str | None = None,
    inbox: str = DEFAULT_INBOX,
    limit: int = 500,
) -> Page:
    return scene.store.events.claim(ACME.tenant_id, inbox, page_of(limit), now_ms, lease_until_ms, attempt)


def claim_ids(
    now_ms: int = NOW, lease_until_ms: int | None = None, attempt: str | None = None, inbox: str = DEFAULT_INBOX
) -> Act:
    return lambda scene: ids(claim(scene, now_ms, lease_until_ms, attempt, inbox).events)


def drain(scene: Scene) -> list[str]:
    while page := claim(scene).events:
        scene.delivered += ids(page)
    return scene.delivered


def after(*acts: Act) -> Act:
    def act(scene: Scene) -> None:
        for each in acts:
            each(scene)

    return act


def lease_events(count: int) -> Act:
    def act(scene: Scene) -> None:
        put_new(count)(scene)
        scene.receipts = receipts(claim(scene, lease_until_ms=LEASE_UNTIL).events)

    return act


def lose_leases(count: int, times: int) -> Act:
    """Leases events `times` times. The lease of the last time ends at LEASE_UNTIL."""

    def act(scene: Scene) -> None:
        put_new(count)(scene)
        for number in range(times):
            claimed_at_ms = NOW - MINUTE * (times - number - 1)
            scene.receipts = receipts(claim(scene, claimed_at_ms, claimed_at_ms + MINUTE).events)
            assert len(scene.receipts) == count

    return act


def release(available_at_ms: int = NOW, *, failed: bool = False) -> Act:
    return lambda scene: scene.store.events.release(ACME.tenant_id, scene.receipts, available_at_ms, NOW, failed=failed)


def nothing(_scene: Scene) -> None:
    pass


def flush(scene: Scene) -> None:
    scene.store.counters.flush()


def save(inbox: Inbox, *, replaces: bool = True) -> Act:
    return lambda scene: scene.store.inboxes.save(ACME.tenant_id, inbox, replace=replaces)


def close(scene: Scene) -> object:
    return scene.store.inboxes.close(ACME.tenant_id, ORDERS.name)


def delete_copies(limit: int) -> Act:
    """Deletes as the service does, until the inbox is gone."""

    def act(scene: Scene) -> None:
        while scene.store.inboxes.delete_copies(ACME.tenant_id, ORDERS.name, limit) == limit:
            pass

    return act


# A claim may have to ask first if the engine's statements are conditional.
WARM_UP = after(put(new_event(99)), claim)


def replay_all(scene: Scene) -> object:
    return scene.store.events.replay_all(ACME.tenant_id, DELIVERED, 500, NOW)


def export(scene: Scene) -> list[ExportedEvent]:
    """Returns the events without their tiebreaks, which are different in each run."""
    events = scene.store.events.export_events(ACME.tenant_id, NOW).events
    return [replace(each, number=0, origin="") for each in events]


def exported(number: int, *, deliveries: int = 0, fingerprint: bytes | None = None) -> ExportedEvent:
    new, status = new_event(number), Status.DELIVERED if deliveries else Status.UNDELIVERED
    event = Event(new.event_id, new.event_type, NOW, status, deliveries, NOW if deliveries else None, new.payload)
    return ExportedEvent(number, event, fingerprint, LATER_S)


def import_events(*records: ExportedEvent) -> Act:
    return lambda scene: scene.store.events.import_events(ACME.tenant_id, records, NOW)


def create_tenant(scene: Scene) -> None:
    scene.store.tenants.create(ACME, creation_entries(ACME))


def create_key(scene: Scene) -> None:
    scene.store.keys.create(KEY)


TENANT_AND_KEY = after(create_tenant, create_key)
