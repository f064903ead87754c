"""One class per engine that opens, reopens and empties a store for the contract suite."""

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Protocol

from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection, groups_of
from inbox.store.dynamodb.layout import SCHEMA_KEY
from inbox.store.dynamodb.tables import DEFINITIONS
from inbox.store.interface import Store
from inbox.store.sqlite import SQLiteStore
from tests.engines.index_reads import refuse_unchecked_index_reads
from tests.engines.lagging_index import LaggingConnection, LaggingIndex
from tests.engines.random_faults import RandomFaults

MAX_DELIVERIES = 3
# Every change of an inbox takes this long, and the suite makes many.
INBOX_CACHE_SECONDS = 0.05


class Harness(Protocol):
    store: Store

    def another(self) -> Store:
        """Returns the store as a second process would open it."""

    def reopen(self) -> None:
        """Opens the store again, as after a restart."""

    def settle(self) -> None:
        """Returns when every index has caught up."""

    def close(self) -> None: ...


class _Harness:
    def __init__(self, open_store: Callable[[], Store], *, has_to_init: bool = True) -> None:
        self._open_store = open_store
        self._others: list[Store] = []
        self.store = open_store()
        if has_to_init:
            self.store.init()

    def another(self) -> Store:
        self._others.append(self._open_store())
        return self._others[-1]

    def reopen(self) -> None:
        self.store.close()
        self.store = self._open_store()

    def settle(self) -> None:
        pass

    def close(self) -> None:
        for store in (self.store, *self._others):
            store.close()


class SQLiteHarness(_Harness):
    def __init__(self, folder: Path) -> None:
        super().__init__(lambda: SQLiteStore(folder / "inbox.db", MAX_DELIVERIES))


class _SharedConnection(Connection):
    """Stays open when a store that uses it closes."""

    def close(self) -> None:
        pass

    def close_for_good(self) -> None:
        super().close()


class DynamoDBHarness(_Harness):
    """Opens stores on the engine that the environment names.

    All harnesses share one connection and one set of tables per engine and `group`: creating them takes longer than
    most tests.
    """

    _shared: ClassVar[dict[str, _SharedConnection]] = {}

    def __init__(
        self,
        connect: Callable[[Connection], Connection] = lambda shared: shared,
        settle_ms: int = 0,
        group: str = "first",
        faults: RandomFaults | None = None,
    ) -> None:
        tables = f"{os.environ['AWS_ENDPOINT_URL_DYNAMODB']} {group}"
        is_first = tables not in self._shared
        if is_first:
            self._shared[tables] = _SharedConnection(f"test-{uuid.uuid4().hex[:8]}-", 16)
            refuse_unchecked_index_reads(self._shared[tables])
        self.connection = self._shared[tables]
        self.prefix = self.connection.table("")
        super().__init__(
            lambda: DynamoDBStore(connect(self.connection), MAX_DELIVERIES, INBOX_CACHE_SECONDS, settle_ms=settle_ms),
            has_to_init=is_first,
        )
        self.faults = faults
        if faults is not None:
            faults.begin(self.connection)

    @classmethod
    def close_connections(cls) -> None:
        while cls._shared:
            cls._shared.popitem()[1].close_for_good()

    def close(self) -> None:
        if self.faults is not None:
            self.faults.end()
        super().close()
        for name in DEFINITIONS:
            self.empty(name)

    def empty(self, name: str) -> None:
        table = self.connection.table(name)
        names = {f"#{key['AttributeName']}": key["AttributeName"] for key in DEFINITIONS[name]["KeySchema"]}
        pages = self.connection.client.get_paginator("scan").paginate(
            TableName=table,
            ConsistentRead=True,
            ProjectionExpression=", ".join(names),
            ExpressionAttributeNames=names,
        )
        # The tables keep their schema version.
        for group in groups_of(25, (key for key in pages.search("Items") if key != SCHEMA_KEY)):
            requests = [{"DeleteRequest": {"Key": item}} for item in group]
            self.connection.call("batch_write_item", RequestItems={table: requests})


class LaggingHarness(DynamoDBHarness):
    def __init__(self, lag_seconds: float = 2.0, settle_ms: int = 0, faults: RandomFaults | None = None) -> None:
        self._index = LaggingIndex(lag_seconds)
        super().__init__(lambda shared: LaggingConnection(shared, self._index), settle_ms, faults=faults)

    def settle(self) -> None:
        self._index.catch_up()
