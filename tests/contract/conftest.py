"""Every engine behind the same suite. A new one costs a harness and a line in ENGINES."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inbox.store.port import Store
from tests.engines.harnesses import DynamoDBHarness, Harness, LaggingHarness, SQLiteHarness

ENGINES: dict[str, tuple[str | None, Callable[[Path], Harness]]] = {
    "sqlite": (None, SQLiteHarness),
    "moto": ("on_moto", lambda _folder: DynamoDBHarness()),
    "dynamodb-local": ("on_dynamodb_local", lambda _folder: DynamoDBHarness()),
    "lagging-index": ("on_dynamodb_local", lambda _folder: LaggingHarness()),
}


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
