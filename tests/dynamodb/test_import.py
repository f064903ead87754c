"""Copying from SQLite: everything is imported once and in order, even if the copy is repeated."""

import secrets
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inbox.domain.events import DEFAULT_INBOX, NewEvent, Order, Selection, Status
from inbox.domain.inboxes import Inbox
from inbox.domain.keys import KeyStatus
from inbox.domain.tenants import TenantStatus
from inbox.errors import NotAllowed
from inbox.services.store_copy import CopyResult, StoreCopy
from inbox.services.tenants import TenantService
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.sqlite import SQLiteStore
from tests.contract.samples import ids
from tests.contract.samples import receipts as receipts_of
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import (
    EVERYTHING,
    LATER_S,
    LEASE_UNTIL,
    NOW,
    api_key,
    audit_entry,
    claim,
    keyed_event,
    new_event,
    poll,
    put_events,
)
from tests.engines.harnesses import MAX_DELIVERIES


@pytest.fixture
def source(tmp_path: Path, tenant: str) -> Iterator[SQLiteStore]:
    source = SQLiteStore(tmp_path / "inbox.db", MAX_DELIVERIES)
    source.tenants.create(named(tenant, organization_name="Acme", email=f"ops@{tenant}.example"), [audit_entry()])
    yield source
    source.close()


@pytest.fixture
def store_copy(source: SQLiteStore, store: DynamoDBStore) -> StoreCopy:
    return StoreCopy(source, store, lambda: NOW)


def run_copy(store_copy: StoreCopy) -> CopyResult:
    progress: list[int] = []
    total = store_copy.count()
    result = store_copy.copy(progress.append)
    assert sum(progress) == total == result.events
    return result


def test_everything_is_copied_unchanged(
    source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str
) -> None:
    keys = [api_key(tenant, "one", NOW + 1), api_key(tenant, "two", NOW + 1)]
    for key in keys:
        source.keys.create(key)
    source.keys.revoke(keys[1].key_id)
    events = [new_event(b'{"n":%d.0}' % number, "a" if number % 2 else None) for number in range(250)]
    source.events.put(tenant, events, NOW, LATER_S)
    delivered = poll(source, tenant, 20, now_ms=NOW + 5)

    assert run_copy(store_copy) == CopyResult(tenants=1, keys=2, events=250, written=250)
    assert store.tenants.get(tenant) == source.tenants.get(tenant)
    assert set(store.keys.all(tenant)) == set(source.keys.all(tenant))
    assert store.keys.get_by_hash(keys[0].key_hash) == source.keys.get_by_hash(keys[0].key_hash)
    assert store.keys.get_by_hash(keys[1].key_hash) is None
    for event in delivered[:3]:
        assert store.events.get(tenant, DEFAULT_INBOX, event.event_id, NOW) == event
    assert claim(store, tenant, 500) == ids(events[20:])


def test_copied_tenant_can_be_resumed_to_its_previous_status(
    source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str
) -> None:
    TenantService(source.tenants, lambda: NOW).set_status(tenant, "admin", TenantStatus.VALIDATED, force=True)
    run_copy(store_copy)
    TenantService(source.tenants, lambda: NOW).set_status(tenant, "admin", TenantStatus.SUSPENDED)
    run_copy(store_copy)

    assert store.tenants.get(tenant) == source.tenants.get(tenant)
    assert TenantService(store.tenants, lambda: NOW).resume(tenant, "admin").status is TenantStatus.VALIDATED


def test_second_copy_only_writes_new_events(
    source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str
) -> None:
    first = put_events(source, tenant, 5)
    run_copy(store_copy)
    second = put_events(source, tenant, 3)

    assert run_copy(store_copy).written == 3
    assert run_copy(store_copy).written == 0
    assert claim(store, tenant) == first + second


def test_events_delivered_by_the_source_are_not_delivered_again(
    source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str
) -> None:
    events = put_events(source, tenant, 6)
    run_copy(store_copy)
    # Two events are polled from the source, and one from the target.
    claim(source, tenant, 2)
    run_copy(store_copy)
    assert claim(store, tenant, 1) == [events[2]]

    assert run_copy(store_copy).written == 0
    assert claim(store, tenant) == events[3:]
    expected = source.events.get(tenant, DEFAULT_INBOX, events[0], NOW)
    assert store.events.get(tenant, DEFAULT_INBOX, events[0], NOW) == expected


def test_events_changed_in_the_target_stay_unchanged(
    source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str
) -> None:
    (event_id,) = put_events(source, tenant, 1)
    run_copy(store_copy)
    claim(source, tenant, 1)
    claim(store, tenant)
    store.events.replay(tenant, DEFAULT_INBOX, event_id, NOW)

    assert run_copy(store_copy).written == 0
    assert claim(store, tenant) == [event_id]


def test_revocation_is_copied(source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str) -> None:
    key = api_key(tenant, "zapier")
    source.keys.create(key)
    run_copy(store_copy)
    source.keys.revoke(key.key_id)
    run_copy(store_copy)

    assert store.keys.all(tenant) == [replace(key, status=KeyStatus.REVOKED)]


def test_change_of_a_tenant_is_copied_with_its_audit_log(
    source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str
) -> None:
    run_copy(store_copy)
    service = TenantService(source.tenants, lambda: NOW + 9)
    service.update(tenant, "cli", email=f"new@{tenant}.example", rate_limit=7)
    service.set_status(tenant, "cli", TenantStatus.SUSPENDED)
    for _ in range(2):
        run_copy(store_copy)

    assert store.tenants.get(tenant) == source.tenants.get(tenant)
    assert store.tenants.audit_log(tenant, 10, None) == source.tenants.audit_log(tenant, 10, None)
    assert len(store.tenants.audit_log(tenant, 10, None)) == 3


def test_tenant_changed_in_the_target_stays_unchanged(store: DynamoDBStore, store_copy: StoreCopy, tenant: str) -> None:
    run_copy(store_copy)
    changed = TenantService(store.tenants, lambda: NOW + 9).delete(tenant, "cli")
    run_copy(store_copy)
    assert store.tenants.get(tenant) == changed


def test_email_of_another_tenant_stops_the_copy(store: DynamoDBStore, store_copy: StoreCopy, tenant: str) -> None:
    store.tenants.create(named(f"other-{tenant}", email=f"OPS@{tenant}.example"), [audit_entry()])
    with pytest.raises(NotAllowed, match=f"The email address of {tenant} belongs to another tenant"):
        run_copy(store_copy)


def test_rotation_is_copied(source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str) -> None:
    old, new = api_key(tenant, "old"), api_key(tenant, "new")
    source.keys.create(old)
    run_copy(store_copy)
    source.keys.rotate(old.key_id, new, NOW + 60_000)
    run_copy(store_copy)
    assert set(store.keys.all(tenant)) == {replace(old, expires_at_ms=NOW + 60_000), new}


def test_inboxes_are_copied_with_the_status_of_their_events(
    source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str
) -> None:
    shipping = Inbox("shipping", ("order.*",), NOW)
    source.inboxes.save(tenant, shipping)
    events = [new_event(), new_event(event_type="invoice"), keyed_event()]
    source.events.put(tenant, events, NOW, LATER_S)
    claim(source, tenant, 1, inbox="shipping", now_ms=NOW + 5)

    assert (run_copy(store_copy).inboxes, store.inboxes.all(tenant)) == (1, [shipping])
    assert claim(store, tenant) == ids(events)
    in_shipping = store.events.page(tenant, Selection("shipping"), Order.OLDEST, EVERYTHING, None, NOW)
    assert [(event.event_id, event.status) for event in in_shipping.events] == [
        (events[0].event_id, Status.DELIVERED),
        (events[2].event_id, Status.UNDELIVERED),
    ]


def test_disabled_default_inbox_stays_disabled(
    source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str
) -> None:
    source.inboxes.set_default_enabled(tenant, False)
    (event_id,) = put_events(source, tenant, 1)
    for _ in range(2):
        run_copy(store_copy)
        assert store.inboxes.is_default_enabled(tenant) is False
        assert store.inboxes.all(tenant) == []
    assert claim(store, tenant) == []
    expected = source.events.get(tenant, DEFAULT_INBOX, event_id, NOW)
    assert store.events.get(tenant, DEFAULT_INBOX, event_id, NOW) == expected

    source.inboxes.set_default_enabled(tenant, True)
    run_copy(store_copy)
    assert store.inboxes.is_default_enabled(tenant) is True


def test_leases_and_receipts_stay_valid(
    source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str
) -> None:
    events = put_events(source, tenant, 3)
    leased = poll(source, tenant, 2, lease_until_ms=LEASE_UNTIL)
    receipts = receipts_of(leased)
    run_copy(store_copy)
    # One event is acknowledged at the source before the second copy, the other at the target after it.
    source.events.acknowledge(tenant, receipts[:1], NOW + 1)
    assert run_copy(store_copy).written == 1

    assert claim(store, tenant) == [events[2]]
    assert store.events.acknowledge(tenant, receipts[1:], NOW + 2) == [True]
    delivered = [store.events.get(tenant, DEFAULT_INBOX, event.event_id, NOW) for event in leased]
    assert [event.delivered_at_ms for event in delivered if event] == [NOW + 1, NOW + 2]


def test_lost_leases_are_copied(source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str) -> None:
    (event_id,) = put_events(source, tenant, 1)
    later = NOW
    for _ in range(MAX_DELIVERIES - 1):
        assert claim(source, tenant, 1, now_ms=later, lease_until_ms=later + 1_000)
        later += 1_000
    assert source.events.peek(tenant, DEFAULT_INBOX, Order.OLDEST, EVERYTHING, later).events
    run_copy(store_copy)

    assert claim(store, tenant, 1, now_ms=later, lease_until_ms=later + 1_000)
    dead = store.events.get(tenant, DEFAULT_INBOX, event_id, later + 1_000)
    assert dead is not None
    assert dead.status is Status.DEAD


def test_idempotency_keys_are_copied(
    source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str
) -> None:
    event = keyed_event()
    source.events.put(tenant, [event], NOW, LATER_S)
    run_copy(store_copy)

    assert store.events.put(tenant, [event], NOW, LATER_S)[0].repeated


def test_events_that_are_too_large_are_reported_and_the_rest_copied(
    source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str
) -> None:
    huge = NewEvent(str(uuid.uuid4()), None, b'{"noise":"' + secrets.token_hex(500_000).encode() + b'"}')
    small = new_event()
    source.events.put(tenant, [huge, small], NOW, LATER_S)

    result = run_copy(store_copy)
    assert (result.written, result.too_large) == (1, [huge.event_id])
    assert claim(store, tenant) == [small.event_id]


def test_expired_events_are_not_copied(
    source: SQLiteStore, store: DynamoDBStore, store_copy: StoreCopy, tenant: str
) -> None:
    source.events.put(tenant, [new_event()], NOW, NOW // 1000)

    assert run_copy(store_copy).events == 0
    assert claim(store, tenant) == []
