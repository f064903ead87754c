"""Runs the suite against every engine. A new engine needs a harness and a line in ENGINES."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inbox.store.interface import Store
from tests.contract.consumer import Consumer
from tests.engines.harnesses import DynamoDBHarness, Harness, LaggingHarness, SQLiteHarness
from tests.engines.random_faults import RandomFaults

_THROTTLED_SHARE, _LOST_SHARE = 0.2, 0.1


def _seed(folder: Path) -> str:
    """Returns a seed of the test's own. Its folder has the test's name and a number."""
    return folder.name.rstrip("0123456789")


def _throttle(folder: Path) -> RandomFaults:
    return RandomFaults(_seed(folder), throttled_share=_THROTTLED_SHARE)


def _lose_responses(folder: Path) -> RandomFaults:
    return RandomFaults(_seed(folder), lost_share=_LOST_SHARE)


def _do_both(folder: Path) -> RandomFaults:
    return RandomFaults(_seed(folder), throttled_share=_THROTTLED_SHARE, lost_share=_LOST_SHARE)


# Engine name → the fixture that starts the engine, and a function that creates its harness.
ENGINES: dict[str, tuple[str | None, Callable[[Path], Harness]]] = {
    "sqlite": (None, SQLiteHarness),
    "moto": ("on_moto", lambda _folder: DynamoDBHarness()),
    "dynamodb-local": ("on_dynamodb_local", lambda _folder: DynamoDBHarness()),
    "lagging-index": ("on_dynamodb_local", lambda _folder: LaggingHarness()),
    "throttled": ("on_dynamodb_local", lambda folder: DynamoDBHarness(faults=_throttle(folder))),
    "lost-responses": ("on_dynamodb_local", lambda folder: DynamoDBHarness(faults=_lose_responses(folder))),
    "all-faults": ("on_dynamodb_local", lambda folder: LaggingHarness(faults=_do_both(folder))),
}
# The engines of tests in real time: their events can be claimed once they have settled.
_SETTLING_ENGINES: dict[str, tuple[str | None, Callable[[Path], Harness]]] = {
    "sqlite": ENGINES["sqlite"],
    "settling-dynamodb-local": ("on_dynamodb_local", lambda _folder: DynamoDBHarness(settle_ms=2_500)),
    "settling-lagging-index": (
        "on_dynamodb_local",
        lambda _folder: LaggingHarness(lag_seconds=0.5, settle_ms=3_000),
    ),
    "settling-throttled": (
        "on_dynamodb_local",
        lambda folder: DynamoDBHarness(settle_ms=2_500, faults=_throttle(folder)),
    ),
    "settling-lost-responses": (
        "on_dynamodb_local",
        lambda folder: DynamoDBHarness(settle_ms=2_500, faults=_lose_responses(folder)),
    ),
    "settling-all-faults": (
        "on_dynamodb_local",
        lambda folder: LaggingHarness(lag_seconds=0.5, settle_ms=3_000, faults=_do_both(folder)),
    ),
}
FAULTY_ENGINES = ("throttled", "lost-responses", "all-faults")
_SLOW = {"lagging-index", *FAULTY_ENGINES, *(f"settling-{engine}" for engine in FAULTY_ENGINES)}

_NOT_ON_LAGGING_INDEX = {
    *("test_batches", "test_counters", "test_idempotency", "test_keys", "test_positions", "test_receipts"),
    *("test_retention", "test_tenant_audit", "test_tenant_pages", "test_tenant_races", "test_tenant_service"),
    "test_tenants",
}
# Tenants, keys and their audit logs are not written in batches, so nothing of them is throttled.
_NOT_THROTTLED = {
    *("test_clock", "test_keys", "test_tenant_audit", "test_tenant_pages", "test_tenant_races", "test_tenant_service"),
    "test_tenants",
}
# Counts may be missing if a response is lost: see docs/explanation/stores.md.
_NOT_WITH_LOST_RESPONSES = {"test_clock", "test_counters"}


def _is_run_on(engine: str, file: str) -> bool:
    match engine:
        case "lagging-index" | "all-faults":
            return file not in _NOT_ON_LAGGING_INDEX
        case "throttled":
            return file not in _NOT_THROTTLED
        case "lost-responses":
            return file not in _NOT_WITH_LOST_RESPONSES
        case "moto":
            # moto executes a PartiQL statement even if its condition is false, so the store claims with single updates
            # there. Only these claims need moto; all other code runs on DynamoDB Local.
            return file in ("test_events", "test_leases")
    return True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs every test that uses a store on every engine, unless the test parametrizes the engine itself."""
    is_chosen = any("harness" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "harness" in metafunc.fixturenames and not is_chosen:
        file = metafunc.module.__name__.rpartition(".")[2]
        engines = [
            pytest.param(engine, marks=[pytest.mark.slow] if engine in _SLOW else [])
            for engine in (_SETTLING_ENGINES if file == "test_order" else ENGINES)
            if _is_run_on(engine, file)
        ]
        metafunc.parametrize("harness", engines, indirect=True)


@pytest.fixture(autouse=True)
def long_claim_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises the time limits of claims for slow machines. tests/dynamodb tests the limits."""
    monkeypatch.setattr("inbox.store.dynamodb.connection.MAX_SECONDS", 120)


@pytest.fixture
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    server, create = (ENGINES | _SETTLING_ENGINES)[request.param]
    if server is not None:
        request.getfixturevalue(server)
    harness = create(tmp_path)
    yield harness
    harness.close()


@pytest.fixture
def store(harness: Harness) -> Store:
    return harness.store


@pytest.fixture
def acme(harness: Harness) -> Consumer:
    return Consumer(harness)
