"""The list of tenants."""

import random
from collections.abc import Callable, Iterator

import pytest

from inbox.domain.inboxes import Inbox
from inbox.domain.keys import ApiKey, KeyStatus
from inbox.domain.tenants import Tenant, TenantPosition, TenantSelection, TenantStatus
from inbox.store.interface import Store
from tests.contract.samples import NOW, create_tenants, tenant, update_tenant
from tests.engines.harnesses import Harness

ALL = TenantSelection(include_inactive=True)
STATUSES = list(TenantStatus)
IDS = ("A", "Z", "a", "a-1", "a.1", "a0", "a_1", "z")


def make_tenants() -> list[Tenant]:
    """Returns tenants newest first: eight of each of five creation times, of every status, some deleted."""
    tenants = [
        tenant(f"{name}{9 - step}", NOW + step, status=STATUSES[(step + index) % 4], active=index % 3 != 2)
        for step in range(5)
        for index, name in enumerate(IDS)
    ]
    return sorted(tenants, key=position_of, reverse=True)


def position_of(tenant: Tenant) -> TenantPosition:
    return TenantPosition(tenant.created_at_ms, tenant.tenant_id)


def list_pages(store: Store, selection: TenantSelection, limit: int) -> Iterator[list[Tenant]]:
    after = None
    while page := store.tenants.page(selection, limit, after):
        yield page
        assert after is None or position_of(page[-1]) < after
        after = position_of(page[-1])


IsSelected = Callable[[Tenant], bool]
SELECTIONS: dict[str, tuple[TenantSelection, IsSelected]] = {
    "all": (ALL, lambda _: True),
    "not deleted": (TenantSelection(), lambda each: each.active),
    "of a status": (TenantSelection(TenantStatus.VALIDATED), lambda each: each.active and each.status == STATUSES[1]),
    "of a status, deleted or not": (
        TenantSelection(TenantStatus.SUSPENDED, include_inactive=True),
        lambda each: each.status == STATUSES[3],
    ),
    "since": (TenantSelection(since_ms=NOW + 1), lambda each: each.active and each.created_at_ms >= NOW + 1),
    "until": (TenantSelection(until_ms=NOW + 3), lambda each: each.active and each.created_at_ms < NOW + 3),
    "within": (
        TenantSelection(since_ms=NOW + 1, until_ms=NOW + 4, include_inactive=True),
        lambda each: NOW + 1 <= each.created_at_ms < NOW + 4,
    ),
    "of a status, within": (
        TenantSelection(TenantStatus.REGISTERED, NOW + 1, NOW + 4),
        lambda each: each.active and each.status == STATUSES[2] and NOW + 1 <= each.created_at_ms < NOW + 4,
    ),
    "one millisecond": (
        TenantSelection(since_ms=NOW + 2, until_ms=NOW + 3, include_inactive=True),
        lambda each: each.created_at_ms == NOW + 2,
    ),
    "empty interval": (TenantSelection(since_ms=NOW + 2, until_ms=NOW + 2, include_inactive=True), lambda _: False),
    "before the first": (TenantSelection(until_ms=NOW), lambda _: False),
    "after the last": (TenantSelection(since_ms=NOW + 5), lambda _: False),
}


def test_pages_are_full_and_contain_every_selected_tenant_once(harness: Harness) -> None:
    tenants = make_tenants()
    create_tenants(harness.store, *random.Random(5).sample(tenants, len(tenants)))
    harness.settle()

    for selection, is_selected in SELECTIONS.values():
        selected = [each for each in tenants if is_selected(each)]
        for limit in (3, 8, 99):
            expected = [selected[start : start + limit] for start in range(0, len(selected), limit)]
            assert list(list_pages(harness.store, selection, limit)) == expected, (selection, limit)


def test_list_continues_behind_a_tenant_no_longer_selected(harness: Harness) -> None:
    tenants = [tenant(f"t{number}", NOW + number // 2) for number in range(5, -1, -1)]
    create_tenants(harness.store, *tenants)
    update_tenant(harness.store, tenants[2], active=False)
    update_tenant(harness.store, tenants[3], status=TenantStatus.SUSPENDED)
    harness.settle()

    registered = TenantSelection(TenantStatus.REGISTERED)
    assert harness.store.tenants.page(registered, 9, position_of(tenants[2])) == tenants[4:]
    assert harness.store.tenants.page(registered, 9, position_of(tenants[3])) == tenants[4:]


def test_list_continues_when_a_tenant_was_created_meanwhile(harness: Harness) -> None:
    tenants = make_tenants()
    create_tenants(harness.store, *tenants)
    harness.settle()
    first = harness.store.tenants.page(ALL, 10, None)
    create_tenants(harness.store, tenant("newest", NOW + 99))
    harness.settle()

    assert harness.store.tenants.page(ALL, 99, position_of(first[-1])) == tenants[10:]


@pytest.mark.parametrize("status", [None, TenantStatus.REGISTERED])
def test_deleted_tenant_is_not_listed_until_it_is_restored(harness: Harness, status: TenantStatus | None) -> None:
    create_tenants(harness.store, tenant())
    deleted = update_tenant(harness.store, tenant(), active=False)
    harness.settle()
    assert harness.store.tenants.page(TenantSelection(status), 9, None) == []
    assert harness.store.tenants.page(TenantSelection(status, include_inactive=True), 9, None) == [deleted]

    restored = update_tenant(harness.store, deleted, active=True)
    harness.settle()
    assert harness.store.tenants.page(TenantSelection(status), 9, None) == [restored]


def test_tenant_is_listed_under_its_current_status(harness: Harness) -> None:
    create_tenants(harness.store, tenant())
    suspended = update_tenant(harness.store, tenant(), status=TenantStatus.SUSPENDED)
    harness.settle()

    listed = {status: harness.store.tenants.page(TenantSelection(status), 9, None) for status in STATUSES}
    assert listed == {status: [suspended] if status is TenantStatus.SUSPENDED else [] for status in STATUSES}


def test_position_can_be_outside_of_the_selection(harness: Harness) -> None:
    tenants = [tenant(f"t{number}", NOW + number) for number in range(5, -1, -1)]
    create_tenants(harness.store, *tenants)
    harness.settle()

    for status in (None, TenantStatus.REGISTERED):
        selection = TenantSelection(status, NOW + 2, NOW + 4)
        assert harness.store.tenants.page(selection, 9, position_of(tenants[0])) == tenants[2:4]
        assert harness.store.tenants.page(selection, 9, position_of(tenants[-1])) == []


def test_keys_and_inboxes_are_not_listed_as_tenants(harness: Harness) -> None:
    acme = tenant(email="ops@acme.example", organization_name="Acme", destination_email="inbox@acme.example")
    create_tenants(harness.store, acme)
    harness.store.keys.create(ApiKey("key_1", "aa" * 32, "acme", "", frozenset(), KeyStatus.ACTIVE, NOW, None))
    harness.store.inboxes.save("acme", Inbox("shipping", None, NOW))
    harness.settle()

    assert harness.store.tenants.page(ALL, 9, None) == [acme]
    assert harness.store.tenants.all() == [acme]
