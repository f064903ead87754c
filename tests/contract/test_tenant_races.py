"""Concurrent creation and updates of tenants."""

from inbox.domain.tenants import Tenant, TenantSelection
from inbox.errors import EmailTaken, TenantExists
from inbox.store.interface import Store
from tests.contract.samples import (
    create_tenants,
    creation_entries,
    next_version,
    run_concurrently,
    tenant,
    update_entries,
)
from tests.engines.harnesses import Harness

ACME = tenant("acme", email="Ops@acme.example", rate_limit=25)
WORKERS = 8
ROUNDS = 3


def create(store: Store, new: Tenant, expected_error: type[Exception]) -> bool:
    """Returns False if the store raises the expected error."""
    try:
        create_tenants(store, new)
    except expected_error:
        return False
    return True


def test_concurrent_creates_with_one_email_create_one_tenant(harness: Harness) -> None:
    stores = [harness.another() for _ in range(WORKERS)]

    def race(number: int) -> None:
        emails = [f"race-{number}@acme.example", f"RACE-{number}@acme.example"]
        candidates = [tenant(f"tenant-{number}-{worker}", email=emails[worker % 2]) for worker in range(WORKERS)]

        succeeded = run_concurrently(WORKERS, lambda worker: create(stores[worker], candidates[worker], EmailTaken))

        assert succeeded.count(True) == 1
        winner = candidates[succeeded.index(True)]
        assert [each for each in harness.store.tenants.all() if each in candidates] == [winner]
        assert harness.store.tenants.get_by_email(emails[0]) == winner
        logs = [harness.store.tenants.audit_log(each.tenant_id, 9, None) for each in candidates]
        assert [log for log in logs if log] == [creation_entries(winner)]

    for number in range(ROUNDS):
        race(number)
    harness.settle()
    assert len(harness.store.tenants.page(TenantSelection(), 99, None)) == ROUNDS


def test_concurrent_creates_with_one_id_create_one_tenant(harness: Harness) -> None:
    stores = [harness.another() for _ in range(WORKERS)]
    candidates = [tenant("acme", email=f"{worker}@acme.example") for worker in range(WORKERS)]

    succeeded = run_concurrently(WORKERS, lambda worker: create(stores[worker], candidates[worker], TenantExists))

    assert succeeded.count(True) == 1
    winner = candidates[succeeded.index(True)]
    assert harness.store.tenants.all() == [winner]
    found = [harness.store.tenants.get_by_email(f"{worker}@acme.example") for worker in range(WORKERS)]
    assert [each for each in found if each] == [winner]


def test_one_of_concurrent_updates_of_a_version_succeeds(harness: Harness) -> None:
    create_tenants(harness.store, ACME)
    stores = [harness.another() for _ in range(WORKERS)]

    def race(before: Tenant) -> Tenant:
        candidates = [next_version(before, rate_limit=worker, updated_by=f"key_{worker}") for worker in range(WORKERS)]

        succeeded = run_concurrently(
            WORKERS,
            lambda worker: stores[worker].tenants.update(
                candidates[worker], before.version, update_entries(candidates[worker])
            ),
        )

        assert succeeded.count(True) == 1
        winner = candidates[succeeded.index(True)]
        assert harness.store.tenants.get("acme") == winner
        assert harness.store.tenants.audit_log("acme", 1, None) == update_entries(winner)
        return winner

    last = ACME
    for _ in range(ROUNDS):
        last = race(last)
    assert len(harness.store.tenants.audit_log("acme", 99, None)) == 1 + ROUNDS


def test_concurrent_updates_give_an_email_to_one_tenant(harness: Harness) -> None:
    tenants = [tenant(f"tenant-{worker}", email=f"{worker}@acme.example") for worker in range(WORKERS)]
    create_tenants(harness.store, *tenants)
    stores = [harness.another() for _ in range(WORKERS)]

    def update(worker: int) -> bool:
        after = next_version(tenants[worker], email="race@acme.example")
        try:
            return stores[worker].tenants.update(after, 1, update_entries(after))
        except EmailTaken:
            return False

    succeeded = run_concurrently(WORKERS, update)
    assert succeeded.count(True) == 1
    winner = succeeded.index(True)
    owner = harness.store.tenants.get_by_email("race@acme.example")
    assert owner == next_version(tenants[winner], email="race@acme.example")
    assert [each.version for each in harness.store.tenants.all()] == [2 if each else 1 for each in succeeded]
