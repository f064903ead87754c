"""Moving over from the embedded store: everything arrives, once, in order, however often it is copied."""

import secrets
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inbox.domain.events import DEFAULT_INBOX, NewEvent, Order, PageSize, Receipt, Selection, Status
from inbox.domain.inboxes import Inbox
from inbox.domain.keys import KeyStatus
from inbox.domain.tenants import TenantStatus
from inbox.errors import NotAllowed
from inbox.services.store_copy import CopyResult, StoreCopy
from inbox.services.tenants import TenantService
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.sqlite import SQLiteStore
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import ANY_SIZE, LATER, NOW, claim, entry, fresh, key_of, keyed
from tests.engines.harnesses import MAX_DELIVERIES


@pytest.fixture
def source(tmp_path: Path, tenant: str) -> Iterator[SQLiteStore]:
    source = SQLiteStore(tmp_path / "inbox.db", MAX_DELIVERIES)
    source.tenants.create(named(tenant, organization_name="Acme", email=f"ops@{tenant}.example"), [entry()])
    yield source
    source.close()


@pytest.fixture
def move(source: SQLiteStore, store: DynamoDBStore) -> StoreCopy:
    return StoreCopy(source, store, lambda: NOW)


def copied(move: StoreCopy) -> CopyResult:
    done: list[int] = []
    total = move.count()
    copied = move.copy(done.append)
    assert sum(done) == total == copied.events
    return copied


def test_everything_arrives_as_it_was(source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str) -> None:
    keys = [key_of(tenant, "one", NOW + 1), key_of(tenant, "two", NOW + 1)]
    for key in keys:
        source.keys.create(key)
    source.keys.revoke(keys[1].key_id)
    events = [fresh(b'{"n":%d.0}' % number, "a" if number % 2 else None) for number in range(250)]
    source.events.put(tenant, events, NOW, LATER)
    delivered = source.events.claim(tenant, DEFAULT_INBOX, PageSize(20, ANY_SIZE), NOW + 5).events

    assert copied(move) == CopyResult(tenants=1, keys=2, events=250, written=250)
    assert store.tenants.get(tenant) == source.tenants.get(tenant)
    assert set(store.keys.all(tenant)) == set(source.keys.all(tenant))
    assert store.keys.get_by_hash(keys[0].key_hash) == source.keys.get_by_hash(keys[0].key_hash)
    assert store.keys.get_by_hash(keys[1].key_hash) is None
    for event in delivered[:3]:
        assert store.events.get(tenant, DEFAULT_INBOX, event.event_id, NOW) == event
    assert claim(store, tenant, 500) == [event.event_id for event in events[20:]]


def test_a_copied_tenant_can_be_resumed_to_its_status_before(
    source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str
) -> None:
    TenantService(source.tenants, lambda: NOW).set_status(tenant, "admin", TenantStatus.VALIDATED, force=True)
    copied(move)
    TenantService(source.tenants, lambda: NOW).set_status(tenant, "admin", TenantStatus.SUSPENDED)
    copied(move)

    assert store.tenants.get(tenant) == source.tenants.get(tenant)
    assert TenantService(store.tenants, lambda: NOW).resume(tenant, "admin").status is TenantStatus.VALIDATED


def test_a_second_copy_brings_only_what_is_new(
    source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str
) -> None:
    first, second = [fresh() for _ in range(5)], [fresh() for _ in range(3)]
    source.events.put(tenant, first, NOW, LATER)
    copied(move)
    source.events.put(tenant, second, NOW, LATER)

    assert copied(move).written == 3
    assert copied(move).written == 0
    assert claim(store, tenant) == [event.event_id for event in (*first, *second)]


def test_what_was_delivered_meanwhile_is_not_delivered_again(
    source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str
) -> None:
    events = [fresh() for _ in range(6)]
    source.events.put(tenant, events, NOW, LATER)
    copied(move)
    # Two are polled from the old store, and one from the new.
    source.events.claim(tenant, DEFAULT_INBOX, PageSize(2, ANY_SIZE), NOW)
    copied(move)
    assert claim(store, tenant, 1) == [events[2].event_id]

    assert copied(move).written == 0
    assert claim(store, tenant) == [event.event_id for event in events[3:]]
    assert store.events.get(tenant, DEFAULT_INBOX, events[0].event_id, NOW) == source.events.get(
        tenant, DEFAULT_INBOX, events[0].event_id, NOW
    )


def test_what_was_touched_in_the_new_store_is_left_alone(
    source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str
) -> None:
    event = fresh()
    source.events.put(tenant, [event], NOW, LATER)
    copied(move)
    source.events.claim(tenant, DEFAULT_INBOX, PageSize(1, ANY_SIZE), NOW)
    claim(store, tenant)
    store.events.replay(tenant, DEFAULT_INBOX, event.event_id, NOW)

    assert copied(move).written == 0
    assert claim(store, tenant) == [event.event_id]


def test_a_key_that_was_revoked_meanwhile_is_revoked(
    source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str
) -> None:
    key = key_of(tenant, "zapier")
    source.keys.create(key)
    copied(move)
    source.keys.revoke(key.key_id)
    copied(move)

    assert store.keys.all(tenant) == [replace(key, status=KeyStatus.REVOKED)]


def test_a_tenant_that_was_changed_meanwhile_changes_too_with_its_trail(
    source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str
) -> None:
    copied(move)
    registry = TenantService(source.tenants, lambda: NOW + 9)
    registry.update(tenant, "cli", email=f"new@{tenant}.example", rate_limit=7)
    registry.set_status(tenant, "cli", TenantStatus.SUSPENDED)
    for _ in range(2):
        copied(move)

    assert store.tenants.get(tenant) == source.tenants.get(tenant)
    assert store.tenants.audit_log(tenant, 10, None) == source.tenants.audit_log(tenant, 10, None)
    assert len(store.tenants.audit_log(tenant, 10, None)) == 3


def test_a_tenant_that_was_changed_in_the_new_store_is_left_alone(
    store: DynamoDBStore, move: StoreCopy, tenant: str
) -> None:
    copied(move)
    changed = TenantService(store.tenants, lambda: NOW + 9).delete(tenant, "cli")
    copied(move)
    assert store.tenants.get(tenant) == changed


def test_an_email_that_is_anothers_in_the_new_store_stops_the_copy_with_a_word(
    store: DynamoDBStore, move: StoreCopy, tenant: str
) -> None:
    store.tenants.create(named(f"other-{tenant}", email=f"OPS@{tenant}.example"), [entry()])
    with pytest.raises(NotAllowed, match=f"The e-mail of {tenant} belongs to another tenant"):
        copied(move)


def test_a_key_that_was_rotated_meanwhile_expires_as_it_should(
    source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str
) -> None:
    old, new = key_of(tenant, "old"), key_of(tenant, "new")
    source.keys.create(old)
    copied(move)
    source.keys.rotate(old.key_id, new, NOW + 60_000)
    copied(move)
    assert set(store.keys.all(tenant)) == {replace(old, expires_at_ms=NOW + 60_000), new}


def test_inboxes_arrive_with_their_copies_and_what_became_of_them(
    source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str
) -> None:
    shipping = Inbox("shipping", ("order.*",), NOW)
    source.inboxes.save(tenant, shipping)
    events = [fresh(), fresh(event_type="invoice"), keyed()]
    source.events.put(tenant, events, NOW, LATER)
    source.events.claim(tenant, "shipping", PageSize(1, ANY_SIZE), NOW + 5)

    assert (copied(move).inboxes, store.inboxes.all(tenant)) == (1, [shipping])
    assert claim(store, tenant) == [event.event_id for event in events]
    in_shipping = store.events.page(tenant, Selection("shipping"), Order.OLDEST, PageSize(9, ANY_SIZE), None, NOW)
    assert [(event.event_id, event.status) for event in in_shipping.events] == [
        (events[0].event_id, Status.DELIVERED),
        (events[2].event_id, Status.UNDELIVERED),
    ]


def test_a_default_inbox_that_is_off_stays_off(
    source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str
) -> None:
    source.inboxes.set_default_enabled(tenant, False)
    event = fresh()
    source.events.put(tenant, [event], NOW, LATER)
    for _ in range(2):
        copied(move)
        assert store.inboxes.is_default_enabled(tenant) is False
        assert store.inboxes.all(tenant) == []
    assert claim(store, tenant) == []
    there = source.events.get(tenant, DEFAULT_INBOX, event.event_id, NOW)
    assert store.events.get(tenant, DEFAULT_INBOX, event.event_id, NOW) == there

    source.inboxes.set_default_enabled(tenant, True)
    copied(move)
    assert store.inboxes.is_default_enabled(tenant) is True


def test_leases_go_on_and_their_receipts_hold(
    source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str
) -> None:
    events = [fresh() for _ in range(3)]
    source.events.put(tenant, events, NOW, LATER)
    leased = source.events.claim(tenant, DEFAULT_INBOX, PageSize(2, ANY_SIZE), NOW, NOW + 60_000).events
    receipts = [Receipt(event.inbox, event.event_id, event.lease.claim_id) for event in leased if event.lease]
    copied(move)
    # One is acknowledged at the source, and that comes with the second copy; the other one where it is now.
    source.events.acknowledge(tenant, receipts[:1], NOW + 1)
    assert copied(move).written == 1

    assert claim(store, tenant) == [events[2].event_id]
    assert store.events.acknowledge(tenant, receipts[1:], NOW + 2) == [True]
    delivered = [store.events.get(tenant, DEFAULT_INBOX, event.event_id, NOW) for event in leased]
    assert [event.delivered_at_ms for event in delivered if event] == [NOW + 1, NOW + 2]


def test_lost_leases_stay_lost(source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str) -> None:
    event = fresh()
    source.events.put(tenant, [event], NOW, LATER)
    later = NOW
    for _ in range(MAX_DELIVERIES - 1):
        assert source.events.claim(tenant, DEFAULT_INBOX, PageSize(1, ANY_SIZE), later, later + 1_000).events
        later += 1_000
    assert source.events.peek(tenant, DEFAULT_INBOX, Order.OLDEST, PageSize(1, ANY_SIZE), later).events
    copied(move)

    assert store.events.claim(tenant, DEFAULT_INBOX, PageSize(1, ANY_SIZE), later, later + 1_000).events
    dead = store.events.get(tenant, DEFAULT_INBOX, event.event_id, later + 1_000)
    assert dead is not None
    assert dead.status is Status.DEAD


def test_an_idempotency_key_goes_on_standing_for_its_event(
    source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str
) -> None:
    event = keyed()
    source.events.put(tenant, [event], NOW, LATER)
    copied(move)

    assert store.events.put(tenant, [event], NOW, LATER)[0].replayed


def test_what_has_no_room_is_named_and_the_rest_arrives(
    source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str
) -> None:
    huge = NewEvent(str(uuid.uuid4()), None, b'{"noise":"' + secrets.token_hex(500_000).encode() + b'"}')
    small = fresh()
    source.events.put(tenant, [huge, small], NOW, LATER)

    result = copied(move)
    assert (result.written, result.too_large) == (1, [huge.event_id])
    assert claim(store, tenant) == [small.event_id]


def test_what_has_expired_stays_behind(source: SQLiteStore, store: DynamoDBStore, move: StoreCopy, tenant: str) -> None:
    source.events.put(tenant, [fresh()], NOW, NOW // 1000)

    assert copied(move).events == 0
    assert claim(store, tenant) == []
