"""Copying a store to another one, of any engine: everything arrives once and in order, even if the copy is repeated."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from inbox.domain.events import DEFAULT_INBOX, Status
from inbox.domain.keys import ApiKey, KeyStatus, Scope
from inbox.domain.stats import UndeliveredSummary
from inbox.domain.tenants import AuditAction, AuditEntry, Change, TenantStatus
from inbox.errors import NotAllowed
from inbox.services.store_copy import CopyResult, StoreCopy
from inbox.services.tenants import TenantService
from inbox.store.interface import Store
from tests.contract.consumer import Consumer
from tests.contract.samples import (
    MINUTE,
    NOW,
    create_tenants,
    ids,
    keyed_event,
    new_event,
    numbered,
    receipts,
    tenant,
    update_tenant,
)
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness, Harness, SQLiteHarness

ACROSS_ENGINES = [("sqlite", "dynamodb"), ("dynamodb", "sqlite")]
ALL_PAIRS = [*ACROSS_ENGINES, ("sqlite", "sqlite"), ("dynamodb", "dynamodb")]

on_all_pairs = pytest.mark.parametrize("engines", ALL_PAIRS, ids="-to-".join, indirect=True)


@dataclass(frozen=True)
class Stores:
    """The consumers are of the tenant `acme`."""

    source: Consumer
    target: Consumer

    @property
    def source_store(self) -> Store:
        return self.source.harness.store

    @property
    def target_store(self) -> Store:
        return self.target.harness.store

    def copy(self, at: int = NOW) -> CopyResult:
        progress: list[tuple[int, int]] = []
        store_copy = StoreCopy(self.source_store, self.target_store, lambda: at)
        copied = store_copy.copy(lambda done, total: progress.append((done, total)))
        assert progress == sorted(progress)
        assert progress[-1][0] == progress[-1][1]
        return copied


@pytest.fixture(params=ACROSS_ENGINES, ids="-to-".join)
def engines(request: pytest.FixtureRequest) -> tuple[str, str]:
    names: tuple[str, str] = request.param
    return names


@pytest.fixture
def stores(request: pytest.FixtureRequest, engines: tuple[str, str], tmp_path: Path) -> Iterator[Stores]:
    if "dynamodb" in engines:
        request.getfixturevalue("on_dynamodb_local")
    harnesses: list[Harness] = []
    for engine, role in zip(engines, ("source", "target"), strict=True):
        folder = tmp_path / role
        folder.mkdir()
        # The tables of the whole suite, and others to copy them to.
        group = "second" if engines[0] == engines[1] and role == "target" else "first"
        harnesses.append(SQLiteHarness(folder) if engine == "sqlite" else DynamoDBHarness(group=group))
    create_tenants(harnesses[0].store, tenant("acme", organization_name="Acme", email="ops@acme.example"))
    yield Stores(*map(Consumer, harnesses))
    for harness in harnesses:
        harness.close()


def api_key(name: str, expires_at_ms: int | None = None) -> ApiKey:
    key_hash = uuid.uuid4().hex * 2
    scopes = frozenset({Scope.INBOX_READ})
    return ApiKey(f"key_{key_hash[:8]}", key_hash, "acme", name, scopes, KeyStatus.ACTIVE, NOW, expires_at_ms)


@on_all_pairs
def test_events_are_copied_unchanged_and_in_order(stores: Stores) -> None:
    source, target = stores.source, stores.target
    source.in_inbox("orders").create_inbox("order.*")
    source.in_inbox("closing").create_inbox()
    source.put(numbered(130))
    # Of the same millisecond, and of an earlier one, in which SQLite puts no event any more.
    source.put([new_event(b'{"n": 1.0, "big": 1e400}', None), keyed_event(str(uuid.uuid4()))])
    source.put(numbered(5), at=NOW + 1)
    source.put([new_event()], expires_at_s=NOW // 1000)
    stores.source_store.inboxes.close("acme", "closing")
    # Two of each status but undelivered.
    source.consume(2, at=NOW + 5)
    source.replay(source.consume(1, at=NOW + 6).events[0].event_id)
    for _ in range(MAX_DELIVERIES):
        source.release(receipts(source.lease(2).events), failed=True)
    source.release(receipts(source.lease(2).events), until=NOW + MINUTE)
    source.lease(2)
    source.in_inbox("orders").lease(3)

    named = len(source.in_inbox("orders").history())
    assert stores.copy() == CopyResult(1, 0, 1, 137 + named, 137 + named)
    assert {event.status for event in target.history()} == set(Status)
    for inbox in (DEFAULT_INBOX, "orders"):
        assert target.in_inbox(inbox).history() == source.in_inbox(inbox).history()
        assert target.in_inbox(inbox).peek(200) == source.in_inbox(inbox).peek(200)
        assert target.in_inbox(inbox).undelivered() == source.in_inbox(inbox).undelivered()
    assert stores.copy().written == 0


@on_all_pairs
def test_order_does_not_depend_on_the_order_of_imports(stores: Stores) -> None:
    events = stores.source.send(*numbered(6)) + stores.source.send(*numbered(2), at=NOW + 1)
    records = list(stores.source_store.events.export_events("acme", NOW).events)
    for part in (records[1::2], records[6::-2]):
        assert stores.target_store.events.import_events("acme", part, NOW).written == 4

    assert ids(stores.target.history()) == ids(events)
    assert ids(stores.target.consume().events) == ids(events)


def test_events_with_equal_numbers_from_two_processes_are_both_kept(stores: Stores) -> None:
    stores.source.send_some(1)
    (record,) = stores.source_store.events.export_events("acme", NOW).events
    records = [
        replace(record, origin=origin, event=record.event._replace(event_id=str(uuid.uuid4())))
        for origin in ("000001", "00000f")
    ]
    stores.target_store.events.import_events("acme", records[::-1], NOW)
    assert ids(stores.target.consume().events) == [record.event.event_id for record in records]


def test_events_of_the_target_come_behind_copied_ones(stores: Stores) -> None:
    copied = stores.source.send_some(1, at=NOW + MINUTE)
    stores.copy()
    own = stores.target.send_some(1, at=NOW + MINUTE + 1)
    late = stores.source.send_some(1, at=NOW + MINUTE)
    stores.copy()
    assert ids(stores.target.consume(at=NOW + 2 * MINUTE).events) == ids([*copied, *late, *own])


@pytest.mark.parametrize("engines", [("dynamodb", "sqlite")], ids="-to-".join, indirect=True)
def test_sqlite_puts_no_event_before_a_copied_one(stores: Stores) -> None:
    create_tenants(stores.source_store, tenant("globex"))
    stores.source.in_tenant("globex").send_some(1)
    copied = stores.source.send_some(1, at=NOW + MINUTE)
    stores.copy()
    (own,) = stores.target.put(numbered(1), at=NOW)
    assert own.timestamp_ms == NOW + MINUTE
    assert ids(stores.target.consume().events) == [*ids(copied), own.event_id]


@on_all_pairs
def test_repeated_copy_writes_what_the_source_has_changed_since(stores: Stores) -> None:
    source, target = stores.source, stores.target
    events = source.send_some(6)
    stores.copy()
    # One event is polled from the target, and two from the source.
    assert ids(target.consume(1).events) == ids(events[:1])
    source.consume(3)
    more = source.send_some(2, at=NOW + 1)

    assert stores.copy().written == 4
    assert [target.get(each.event_id) for each in events] == [source.get(each.event_id) for each in events]
    assert stores.copy().written == 0
    assert ids(target.consume().events) == ids([*events[3:], *more])


def test_events_changed_in_the_target_stay_unchanged(stores: Stores) -> None:
    (event,) = stores.source.send_some(1)
    stores.copy()
    stores.source.consume()
    stores.target.consume()
    stores.target.replay(event.event_id)

    assert stores.copy().written == 0
    assert ids(stores.target.consume().events) == [event.event_id]


def test_leases_and_receipts_stay_valid(stores: Stores) -> None:
    source, target = stores.source, stores.target
    events = source.send_some(3)
    leased = source.lease(2).events
    stores.copy()
    # One event is acknowledged at the source before the second copy, the other at the target after it.
    source.acknowledge(receipts(leased)[:1], at=NOW + 1)
    assert stores.copy().written == 1

    assert ids(target.consume().events) == [events[2].event_id]
    assert target.acknowledge(receipts(leased)[1:], at=NOW + 2) == [True]
    delivered = [target.get(event.event_id) for event in leased]
    assert [event.delivered_at_ms for event in delivered if event] == [NOW + 1, NOW + 2]


def test_end_of_a_copied_lease_is_not_a_change_of_the_target(stores: Stores) -> None:
    stores.source.send_some(2)
    leased = stores.source.lease().events
    stores.copy()
    stores.source.acknowledge(receipts(leased)[:1])
    assert len(stores.target.peek(at=NOW + MINUTE).events) == 2

    assert stores.copy(at=NOW + MINUTE).written == 1
    assert ids(stores.target.consume(at=NOW + MINUTE).events) == ids(leased[1:])


def test_lost_leases_are_copied(stores: Stores) -> None:
    stores.source.send_some(1)
    for lease in range(MAX_DELIVERIES):
        assert stores.source.lease(at=NOW + lease * MINUTE).events
    stores.copy()

    (leased,) = stores.target.history(at=NOW)
    dead = stores.target.get(leased.event_id, at=NOW + MAX_DELIVERIES * MINUTE)
    assert (leased.status, dead and dead.status) == (Status.LEASED, Status.DEAD)


def test_delays_are_copied(stores: Stores) -> None:
    events = stores.source.send_some(1)
    stores.source.release(receipts(stores.source.lease().events), until=NOW + MINUTE)
    stores.copy()

    assert stores.target.consume(at=NOW + MINUTE - 1).events == []
    assert ids(stores.target.consume(at=NOW + MINUTE).events) == ids(events)


def test_idempotency_keys_are_copied(stores: Stores) -> None:
    for consumer in (stores.source, stores.target):
        consumer.in_inbox("orders").create_inbox()
    event = keyed_event(str(uuid.uuid4()))
    stores.source.send(event)
    stores.copy()

    assert stores.target.put([event])[0].repeated
    assert stores.target.erase(event.event_id)
    assert stores.target.in_inbox("orders").get(event.event_id) is None
    assert not stores.target.erase(event.event_id)


def test_disabled_default_inbox_stays_disabled(stores: Stores) -> None:
    stores.source_store.inboxes.set_default_enabled("acme", False)
    (event,) = stores.source.send_some(1)
    for _ in range(2):
        stores.copy()
        assert stores.target_store.inboxes.is_default_enabled("acme") is False
        assert stores.target_store.inboxes.all("acme") == []
    assert stores.target.undelivered() == UndeliveredSummary(0, None)
    assert stores.target.get(event.event_id) == stores.source.get(event.event_id)

    stores.source_store.inboxes.set_default_enabled("acme", True)
    stores.copy()
    assert stores.target_store.inboxes.is_default_enabled("acme") is True


@on_all_pairs
def test_keys_are_copied_unchanged(stores: Stores) -> None:
    source, target = stores.source_store.keys, stores.target_store.keys
    used, revoked, rotated = api_key("used"), api_key("revoked", NOW + MINUTE), api_key("rotated", NOW + 2 * MINUTE)
    for key in (used, revoked, rotated):
        source.create(key)
    source.revoke(revoked.key_id)
    assert stores.copy().keys == 3
    assert target.all("acme") == source.all("acme")
    assert target.get_by_hash(used.key_hash) == source.get_by_hash(used.key_hash)
    assert target.get_by_hash(revoked.key_hash) is None

    source.record_use(used.key_hash, NOW + 1)
    source.revoke(used.key_id)
    source.rotate(rotated.key_id, api_key("successor"), NOW + MINUTE)
    assert stores.copy().keys == 4
    assert target.all("acme") == source.all("acme")
    assert replace(used, status=KeyStatus.REVOKED, last_used_at_ms=NOW + 1) in target.all("acme")


@on_all_pairs
def test_tenants_are_copied_with_their_audit_logs(stores: Stores) -> None:
    source, target = stores.source_store.tenants, stores.target_store.tenants
    # More entries than DynamoDB writes in a transaction.
    entries = [
        AuditEntry(number, NOW + number, "cli", AuditAction.UPDATED, {"rate_limit": Change(None, number)}, number == 7)
        for number in range(1, 121)
    ]
    source.create(tenant("globex", version=120, email="Ops@Globex.example", rate_limit=120), entries)
    assert stores.copy().tenants == 2
    assert target.all() == source.all()
    assert target.audit_log("globex", 200, None) == entries[::-1]

    service = TenantService(source, lambda: NOW + 9)
    service.set_status("acme", "admin", TenantStatus.SUSPENDED)
    # The address moves to a tenant that is copied before its owner.
    service.update("globex", "cli", email="new@globex.example")
    service.update("acme", "cli", email="ops@globex.example")
    for _ in range(2):
        stores.copy()
    assert target.all() == source.all()
    assert target.get_by_email("OPS@globex.example") == source.get("acme")
    for tenant_id in ("acme", "globex"):
        assert target.audit_log(tenant_id, 200, None) == source.audit_log(tenant_id, 200, None)
    assert TenantService(target, lambda: NOW).resume("acme", "admin").status is TenantStatus.REGISTERED


def test_tenant_changed_in_the_target_stays_unchanged(stores: Stores) -> None:
    stores.copy()
    acme = stores.target_store.tenants.get("acme")
    assert acme is not None
    changed = update_tenant(stores.target_store, acme, rate_limit=7)
    stores.copy()
    assert stores.target_store.tenants.get("acme") == changed


def test_email_of_another_tenant_stops_the_copy(stores: Stores) -> None:
    create_tenants(stores.target_store, tenant("globex", email="OPS@acme.example"))
    with pytest.raises(NotAllowed, match="The email address of acme belongs to another tenant"):
        stores.copy()
