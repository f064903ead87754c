"""What a store promises about those who want the same of it at the same time: `TenantStore` in `inbox.store.port`."""

from inbox.domain.tenants import Tenant, TenantSelection
from inbox.errors import EmailTaken, TenantExists
from inbox.store.interface import Store
from tests.contract.samples import at_the_same_time, changed, created, keep, tenant, updated
from tests.engines.harnesses import Harness

ACME = tenant("acme", email="Ops@acme.example", rate_limit=25)
RACERS = 8
ROUNDS = 3


def creates(store: Store, new: Tenant, refusal: type[Exception]) -> bool:
    try:
        keep(store, new)
    except refusal:
        return False
    return True


def test_creators_racing_for_one_email_end_with_one_tenant(harness: Harness) -> None:
    stores = [harness.another() for _ in range(RACERS)]

    def race(number: int) -> None:
        emails = [f"race-{number}@acme.example", f"RACE-{number}@acme.example"]
        racers = [tenant(f"tenant-{number}-{racer}", email=emails[racer % 2]) for racer in range(RACERS)]

        won = at_the_same_time(RACERS, lambda racer: creates(stores[racer], racers[racer], EmailTaken))

        assert won.count(True) == 1
        winner = racers[won.index(True)]
        assert [each for each in harness.store.tenants.all() if each in racers] == [winner]
        assert harness.store.tenants.get_by_email(emails[0]) == winner
        trails = [harness.store.tenants.audit_log(each.tenant_id, 9, None) for each in racers]
        assert [trail for trail in trails if trail] == [created(winner)]

    for number in range(ROUNDS):
        race(number)
    harness.settle()
    assert len(harness.store.tenants.page(TenantSelection(), 99, None)) == ROUNDS


def test_creators_racing_for_one_id_end_with_one_tenant(harness: Harness) -> None:
    stores = [harness.another() for _ in range(RACERS)]
    racers = [tenant("acme", email=f"{racer}@acme.example") for racer in range(RACERS)]

    won = at_the_same_time(RACERS, lambda racer: creates(stores[racer], racers[racer], TenantExists))

    assert won.count(True) == 1
    winner = racers[won.index(True)]
    assert harness.store.tenants.all() == [winner]
    found = [harness.store.tenants.get_by_email(f"{racer}@acme.example") for racer in range(RACERS)]
    assert [each for each in found if each] == [winner]


def test_of_changes_racing_from_one_version_one_is_made(harness: Harness) -> None:
    keep(harness.store, ACME)
    stores = [harness.another() for _ in range(RACERS)]

    def race(before: Tenant) -> Tenant:
        racers = [changed(before, rate_limit=racer, updated_by=f"key_{racer}") for racer in range(RACERS)]

        won = at_the_same_time(
            RACERS,
            lambda racer: stores[racer].tenants.update(racers[racer], before.version, updated(racers[racer])),
        )

        assert won.count(True) == 1
        winner = racers[won.index(True)]
        assert harness.store.tenants.get("acme") == winner
        assert harness.store.tenants.audit_log("acme", 1, None) == updated(winner)
        return winner

    last = ACME
    for _ in range(ROUNDS):
        last = race(last)
    assert len(harness.store.tenants.audit_log("acme", 99, None)) == 1 + ROUNDS


def test_changes_racing_for_one_email_give_it_to_one(harness: Harness) -> None:
    tenants = [tenant(f"tenant-{racer}", email=f"{racer}@acme.example") for racer in range(RACERS)]
    keep(harness.store, *tenants)
    stores = [harness.another() for _ in range(RACERS)]

    def take(racer: int) -> bool:
        after = changed(tenants[racer], email="race@acme.example")
        try:
            return stores[racer].tenants.update(after, 1, updated(after))
        except EmailTaken:
            return False

    won = at_the_same_time(RACERS, take)
    assert won.count(True) == 1
    winner = won.index(True)
    owner = harness.store.tenants.get_by_email("race@acme.example")
    assert owner == changed(tenants[winner], email="race@acme.example")
    assert [each.version for each in harness.store.tenants.all()] == [2 if each else 1 for each in won]
