"""A store on each engine, as the contract suite handles it."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.tables import DEFINITIONS
from inbox.store.port import Store
from inbox.store.sqlite import SQLiteStore
from tests.engines.lagging_index import LaggingConnection, LaggingIndex


class Harness(Protocol):
    store: Store

    def another(self) -> Store:
        """The same store as another process would open it."""

    def reopen(self) -> None:
        """As after a restart: what was not kept is gone."""

    def settle(self) -> None:
        """Waits until a lagging index has caught up."""

    def close(self) -> None: ...


class _Harness:
    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._others: list[Store] = []
        self.store = open_store()
        self.store.init()

    def another(self) -> Store:
        self._others.append(self._open_store())
        return self._others[-1]

    def reopen(self) -> None:
        self.store.close()
        self.store = self._open_store()

    def settle(self) -> None:
        """Where the index never lags."""

    def close(self) -> None:
        for store in (self.store, *self._others):
            store.close()


class SQLiteHarness(_Harness):
    def __init__(self, folder: Path) -> None:
        super().__init__(lambda: SQLiteStore(folder / "inbox.db"))


class DynamoDBHarness(_Harness):
    """On the engine that the environment names, with tables of its own."""

    def __init__(self, connect: Callable[[str], Connection] = lambda prefix: Connection(prefix, 16)) -> None:
        self.prefix = f"test-{uuid.uuid4().hex[:8]}-"
        self.connection = connect(self.prefix)
        super().__init__(lambda: DynamoDBStore(connect(self.prefix)))

    def close(self) -> None:
        for name in DEFINITIONS:
            self.connection.call("delete_table", TableName=self.connection.table(name))
        self.connection.close()
        super().close()


class LaggingHarness(DynamoDBHarness):
    def __init__(self) -> None:
        self._index = LaggingIndex()
        super().__init__(lambda prefix: LaggingConnection(prefix, self._index))

    def settle(self) -> None:
        self._index.catch_up()
