"""Who wins where several want the same of the registry: an e-mail, an id, a version, a key."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from inbox.domain.keys import KeyStatus
from inbox.errors import EmailTaken, StoreUnavailable, TenantExists
from inbox.store.dynamodb import DynamoDBStore
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import NOW, entry, key_of
from tests.dynamodb.test_registry import by_index_email, items_of, outcome
from tests.engines.harnesses import DynamoDBHarness
from tests.engines.wire import Fault, Wire


def race(store: DynamoDBStore, monkeypatch: pytest.MonkeyPatch, acts: list[Callable[[], object]]) -> list[object]:
    """The outcome of each. None writes before all have looked."""
    have_looked = threading.Barrier(len(acts))
    transact = store._connection.transact

    def together(*writes: dict[str, Any]) -> None:
        have_looked.wait(30)
        transact(*writes)

    monkeypatch.setattr(store._connection, "transact", together)
    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(outcome, acts))


def test_of_eight_who_race_for_an_e_mail_one_becomes_a_tenant(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    racers = [named(f"{tenant}-{number}", email=f"Ops@{tenant}.example") for number in range(8)]
    outcomes = race(store, monkeypatch, [partial(store.tenants.create, each, [entry()]) for each in racers])

    assert Counter(outcomes) == {None: 1, EmailTaken: 7}
    winner = racers[outcomes.index(None)]
    assert store.tenants.get_by_email(f"ops@{tenant}.example") == winner
    found = {item["PK"]["S"] for item in items_of(harness, tenant)}
    assert found == {f"TENANT#{winner.tenant_id}", f"EMAIL#ops@{tenant}.example"}
    assert by_index_email(harness, f"ops@{tenant}.example") == [winner.tenant_id]


def test_of_eight_who_race_for_an_id_one_gets_it(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The e-mail is taken for those who come late too; that there is such a tenant comes first.
    racers = [named(tenant, email=f"ops@{tenant}.example", rate_limit=number) for number in range(8)]
    outcomes = race(store, monkeypatch, [partial(store.tenants.create, each, [entry()]) for each in racers])

    assert Counter(outcomes) == {None: 1, TenantExists: 7}
    assert store.tenants.get(tenant) == racers[outcomes.index(None)]


def test_of_eight_who_change_one_version_one_does(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.tenants.create(named(tenant), [entry(1)])
    racers = [named(tenant, email=f"ops{number}@{tenant}.example", version=2) for number in range(8)]
    outcomes = race(store, monkeypatch, [partial(store.tenants.update, each, 1, [entry(2)]) for each in racers])

    assert Counter(outcomes) == {True: 1, False: 7}
    winner = racers[outcomes.index(True)]
    assert [store.tenants.get_by_email(each.email or "") for each in racers].count(None) == 7
    assert store.tenants.get(tenant) == winner


def test_of_two_who_change_to_one_e_mail_one_gets_it(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    racers = [named(f"{tenant}-{number}", email=f"ops@{tenant}.example", version=2) for number in range(2)]
    for each in racers:
        store.tenants.create(replace(each, email=None, version=1), [entry(1)])
    outcomes = race(store, monkeypatch, [partial(store.tenants.update, each, 1, [entry(2)]) for each in racers])

    assert Counter(outcomes) == {True: 1, EmailTaken: 1}
    assert store.tenants.get_by_email(f"ops@{tenant}.example") == racers[outcomes.index(True)]


def test_a_key_that_is_revoked_while_it_is_rotated_has_no_successor(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str
) -> None:
    key, successor = key_of(tenant), key_of(tenant)
    store.tenants.create(named(tenant), [entry()])
    store.keys.create(key)
    wire.fail("TransactWriteItems", Fault.THROTTLED, 1, then=lambda _body: other_store.keys.revoke(key.key_id))

    assert store.keys.rotate(key.key_id, successor, NOW + 9) is False
    assert store.keys.all(tenant) == [replace(key, status=KeyStatus.REVOKED)]


@pytest.mark.parametrize("expires_at_ms", [None, NOW + 20])
def test_of_two_who_rotate_a_key_at_once_the_earlier_end_counts(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, expires_at_ms: int | None
) -> None:
    key, mine, theirs = key_of(tenant, expires_at_ms=expires_at_ms), key_of(tenant), key_of(tenant)
    store.tenants.create(named(tenant), [entry()])
    store.keys.create(key)

    def rotate_it_too(_body: dict[str, Any]) -> None:
        assert other_store.keys.rotate(key.key_id, theirs, NOW + 5)

    wire.fail("TransactWriteItems", Fault.THROTTLED, 1, then=rotate_it_too)
    assert store.keys.rotate(key.key_id, mine, NOW + 9)
    assert set(store.keys.all(tenant)) == {replace(key, expires_at_ms=NOW + 5), mine, theirs}


@pytest.mark.usefixtures("no_pauses")
def test_a_key_that_never_stays_as_it_was_read_cannot_be_rotated(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = key_of(tenant)
    store.tenants.create(named(tenant), [entry()])
    store.keys.create(key)
    as_it_was = store.keys._item(key.key_id)
    assert store.keys.rotate(key.key_id, key_of(tenant), NOW + 9)
    monkeypatch.setattr(store.keys, "_item", lambda _key_id: as_it_was)

    with pytest.raises(StoreUnavailable):
        store.keys.rotate(key.key_id, key_of(tenant), NOW + 5)
