"""Every engine behind the same suite. A new one costs a harness and a line in ENGINES."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inbox.store.interface import Store
from tests.contract.consumer import Consumer
from tests.engines.harnesses import DynamoDBHarness, Harness, LaggingHarness, SQLiteHarness

# So that it says what differed.
pytest.register_assert_rewrite("tests.contract.lives")

ENGINES: dict[str, tuple[str | None, Callable[[Path], Harness]]] = {
    "sqlite": (None, SQLiteHarness),
    "moto": ("on_moto", lambda _folder: DynamoDBHarness()),
    "dynamodb-local": ("on_dynamodb_local", lambda _folder: DynamoDBHarness()),
    "lagging-index": ("on_dynamodb_local", lambda _folder: LaggingHarness()),
}

_REGISTRY = {
    "test_keys",
    "test_registry",
    "test_tenant_audit",
    "test_tenant_pages",
    "test_tenant_races",
    "test_tenants",
}
NEEDLESS = {
    # They never ask an index, or only one that has caught up.
    "lagging-index": _REGISTRY
    | {"test_batches", "test_counters", "test_idempotency", "test_positions", "test_receipts", "test_retention"},
    # It answers these as DynamoDB Local does, and takes longer for it. What it does otherwise is changing an event.
    "moto": _REGISTRY
    | {
        "test_arrivals",
        "test_batches",
        "test_clock",
        "test_counters",
        "test_default_inbox",
        "test_history",
        "test_idempotency",
        "test_inboxes",
        "test_positions",
        "test_retention",
    },
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    needless = [
        item for item in items for engine, files in NEEDLESS.items() if engine in item.name and item.path.stem in files
    ]
    if needless:
        config.hook.pytest_deselected(items=needless)
        items[:] = [item for item in items if item not in needless]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is turned away on a slow machine. tests/dynamodb/test_turns.py has what comes of waiting too long."""
    monkeypatch.setattr("inbox.store.dynamodb.turns.MAX_SECONDS", 120)


@pytest.fixture(params=ENGINES, ids=str)
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    server, create = ENGINES[request.param]
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
