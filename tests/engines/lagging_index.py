"""A `status-index` that lags behind the table, as DynamoDB's may. DynamoDB Local's never lags.

For up to `lag_seconds` after a write it may lack a new entry, still list a removed one, or list a removed one again
after it had vanished. Later entries may appear before earlier ones.
"""

import random
import threading
import time
from dataclasses import dataclass
from typing import Any

from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import EVENTS, STATUS_INDEX, Item

_WRITES = {"put_item", "update_item", "delete_item", "batch_write_item", "batch_execute_statement"}

Key = tuple[str, str, str]


@dataclass
class _EntryTimes:
    """When an entry is listed: from `appears` until `vanishes`, and again from `returns` until `vanishes_again`.

    `versions` are its attributes, each with the time from which the index shows them.
    """

    versions: list[tuple[float, Item]]
    appears: float
    is_removed: bool = False
    vanishes: float = float("inf")
    returns: float = float("inf")
    vanishes_again: float = float("inf")

    def item_at(self, now: float) -> Item:
        return next(item for since, item in reversed(self.versions) if since <= now)

    def is_shown(self, now: float) -> bool:
        return self.appears <= now < self.vanishes or self.returns <= now < self.vanishes_again


class LaggingIndex:
    """The index that all stores of one test share."""

    def __init__(self, lag_seconds: float) -> None:
        self._lag_seconds = lag_seconds
        self.mutex = threading.RLock()
        self._random = random.Random(20)
        self._entries: dict[Key, _EntryTimes] = {}
        self._seconds_ahead = 0.0

    def catch_up(self) -> None:
        self.advance(self._lag_seconds)

    def advance(self, seconds: float) -> None:
        """Lets time pass for the index."""
        with self.mutex:
            self._seconds_ahead += seconds

    def observe(self, items: list[Item]) -> None:
        """Records the entries that the index really has now."""
        now = self._now()
        actual = {_key(item): item for item in items}
        for key, item in actual.items():
            if key not in self._entries or self._entries[key].is_removed:
                appears = now + self._random.uniform(0, self._lag_seconds)
                self._entries[key] = _EntryTimes([(0.0, item)], appears)
            elif self._entries[key].versions[-1][1] != item:
                versions = self._entries[key].versions
                since = now + self._random.uniform(0, self._lag_seconds)
                versions.append((max(since, versions[-1][0]), item))
        for key, entry in self._entries.items():
            if key not in actual and not entry.is_removed:
                entry.is_removed = True
                entry.vanishes, entry.returns, entry.vanishes_again = sorted(
                    now + self._random.uniform(0, self._lag_seconds) for _ in range(3)
                )

    def shown(self) -> list[Item]:
        now = self._now()
        return [entry.item_at(now) for entry in self._entries.values() if entry.is_shown(now)]

    def _now(self) -> float:
        return time.monotonic() + self._seconds_ahead


class LaggingConnection(Connection):
    """Uses the sockets of another connection, which stays open."""

    def __init__(self, connection: Connection, index: LaggingIndex) -> None:
        self.__dict__.update(connection.__dict__)
        self._index = index

    def close(self) -> None:
        pass

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        if parameters.get("IndexName") == STATUS_INDEX:
            self._observe()
            return self._query(**parameters)
        try:
            return super().call(operation, **parameters)
        finally:
            # A write whose response was lost ends with an error.
            if operation in _WRITES:
                self._observe()

    def call_once(self, operation: str, **parameters: Any) -> dict[str, Any]:
        try:
            return super().call_once(operation, **parameters)
        finally:
            self._observe()

    def _observe(self) -> None:
        with self._index.mutex:
            page: dict[str, Any] = {}
            items: list[Item] = []
            while not page or "LastEvaluatedKey" in page:
                start = {"ExclusiveStartKey": page["LastEvaluatedKey"]} if page else {}
                page = super().call("scan", TableName=self.table(EVENTS), IndexName=STATUS_INDEX, **start)
                items += page["Items"]
            self._index.observe(items)

    def _query(self, **parameters: Any) -> dict[str, Any]:
        values = parameters["ExpressionAttributeValues"]
        first, last = (values.get(name, {"S": bound})["S"] for name, bound in ((":first", ""), (":last", "~")))
        forward = parameters.get("ScanIndexForward", True)
        with self._index.mutex:
            shown = [
                item
                for item in self._index.shown()
                if item["gsi1pk"] == values[":partition"] and first <= item["gsi1sk"]["S"] <= last
            ]
        shown.sort(key=_key, reverse=not forward)
        if "ExclusiveStartKey" in parameters:
            start = _key(parameters["ExclusiveStartKey"])
            shown = [item for item in shown if (_key(item) > start if forward else _key(item) < start)]
        page = shown[: parameters["Limit"]]
        return {"Items": page, **({"LastEvaluatedKey": page[-1]} if len(shown) > len(page) else {})}


def _key(item: Item) -> Key:
    return item["gsi1sk"]["S"], item["pk"]["S"], item["sk"]["S"]
