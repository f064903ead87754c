"""What a store promises about its list of tenants: `page` of `TenantStore` in `inbox.store.port`."""

import random
from collections.abc import Callable, Iterator

import pytest

from inbox.domain.inboxes import Inbox
from inbox.domain.keys import ApiKey, KeyStatus
from inbox.domain.tenants import Tenant, TenantPosition, TenantSelection, TenantStatus
from inbox.store.interface import Store
from tests.contract.samples import NOW, change, keep, tenant
from tests.engines.harnesses import Harness

EVERYBODY = TenantSelection(include_inactive=True)
STATUSES = list(TenantStatus)
IDS = ("A", "Z", "a", "a-1", "a.1", "a0", "a_1", "z")


def many() -> list[Tenant]:
    """The newest first: five moments with eight tenants each, of every status, some deleted."""
    tenants = [
        tenant(f"{name}{9 - moment}", NOW + moment, status=STATUSES[(moment + place) % 4], active=place % 3 != 2)
        for moment in range(5)
        for place, name in enumerate(IDS)
    ]
    return sorted(tenants, key=place_of, reverse=True)


def place_of(tenant: Tenant) -> TenantPosition:
    return TenantPosition(tenant.created_at_ms, tenant.tenant_id)


def pages(store: Store, selection: TenantSelection, most: int) -> Iterator[list[Tenant]]:
    after = None
    while page := store.tenants.page(selection, most, after):
        yield page
        assert after is None or place_of(page[-1]) < after
        after = place_of(page[-1])


Selected = Callable[[Tenant], bool]
SELECTIONS: dict[str, tuple[TenantSelection, Selected]] = {
    "everybody": (EVERYBODY, lambda _: True),
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
    "one moment": (
        TenantSelection(since_ms=NOW + 2, until_ms=NOW + 3, include_inactive=True),
        lambda each: each.created_at_ms == NOW + 2,
    ),
    "no moment": (TenantSelection(since_ms=NOW + 2, until_ms=NOW + 2, include_inactive=True), lambda _: False),
    "before anybody came": (TenantSelection(until_ms=NOW), lambda _: False),
    "after everybody came": (TenantSelection(since_ms=NOW + 5), lambda _: False),
}


def test_nobody_is_listed_where_there_is_nobody(store: Store) -> None:
    assert store.tenants.page(EVERYBODY, 10, None) == []


def test_pages_are_full_and_nobody_comes_twice_or_is_missed(harness: Harness) -> None:
    tenants = many()
    keep(harness.store, *random.Random(5).sample(tenants, len(tenants)))
    harness.settle()

    for selection, is_selected in SELECTIONS.values():
        selected = [each for each in tenants if is_selected(each)]
        for most in (3, 8, 99):
            expected = [selected[start : start + most] for start in range(0, len(selected), most)]
            assert list(pages(harness.store, selection, most)) == expected, (selection, most)


def test_a_listing_goes_on_behind_a_tenant_that_has_left_it(harness: Harness) -> None:
    tenants = [tenant(f"t{number}", NOW + number // 2) for number in range(5, -1, -1)]
    keep(harness.store, *tenants)
    change(harness.store, tenants[2], active=False)
    change(harness.store, tenants[3], status=TenantStatus.SUSPENDED)
    harness.settle()

    registered = TenantSelection(TenantStatus.REGISTERED)
    assert harness.store.tenants.page(registered, 9, place_of(tenants[2])) == tenants[4:]
    assert harness.store.tenants.page(registered, 9, place_of(tenants[3])) == tenants[4:]


def test_whoever_comes_while_a_listing_is_read_disturbs_it_nowhere(harness: Harness) -> None:
    tenants = many()
    keep(harness.store, *tenants)
    harness.settle()
    first = harness.store.tenants.page(EVERYBODY, 10, None)
    keep(harness.store, tenant("newest", NOW + 99))
    harness.settle()

    assert harness.store.tenants.page(EVERYBODY, 99, place_of(first[-1])) == tenants[10:]


@pytest.mark.parametrize("status", [None, TenantStatus.REGISTERED])
def test_a_tenant_leaves_the_list_when_it_is_deleted_and_comes_back_restored(
    harness: Harness, status: TenantStatus | None
) -> None:
    keep(harness.store, tenant())
    deleted = change(harness.store, tenant(), active=False)
    harness.settle()
    assert harness.store.tenants.page(TenantSelection(status), 9, None) == []
    assert harness.store.tenants.page(TenantSelection(status, include_inactive=True), 9, None) == [deleted]

    restored = change(harness.store, deleted, active=True)
    harness.settle()
    assert harness.store.tenants.page(TenantSelection(status), 9, None) == [restored]


def test_a_tenant_is_listed_under_its_status_of_now(harness: Harness) -> None:
    keep(harness.store, tenant())
    suspended = change(harness.store, tenant(), status=TenantStatus.SUSPENDED)
    harness.settle()

    listed = {status: harness.store.tenants.page(TenantSelection(status), 9, None) for status in STATUSES}
    assert listed == {status: [suspended] if status is TenantStatus.SUSPENDED else [] for status in STATUSES}


def test_a_place_outside_of_the_selection_is_a_place_too(harness: Harness) -> None:
    tenants = [tenant(f"t{number}", NOW + number) for number in range(5, -1, -1)]
    keep(harness.store, *tenants)
    harness.settle()

    for status in (None, TenantStatus.REGISTERED):
        selection = TenantSelection(status, NOW + 2, NOW + 4)
        assert harness.store.tenants.page(selection, 9, place_of(tenants[0])) == tenants[2:4]
        assert harness.store.tenants.page(selection, 9, place_of(tenants[-1])) == []


def test_keys_and_inboxes_are_no_tenants(harness: Harness) -> None:
    acme = tenant(email="ops@acme.example", organization_name="Acme", destination_email="inbox@acme.example")
    keep(harness.store, acme)
    harness.store.keys.create(ApiKey("key_1", "aa" * 32, "acme", "", frozenset(), KeyStatus.ACTIVE, NOW, None))
    harness.store.inboxes.save("acme", Inbox("shipping", None, NOW))
    harness.settle()

    assert harness.store.tenants.page(EVERYBODY, 9, None) == [acme]
    assert harness.store.tenants.all() == [acme]
