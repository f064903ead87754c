"""How new events get into the table: one by one on a condition, or many in a batch without one."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from itertools import islice
from queue import SimpleQueue
from typing import Any

from inbox.errors import StoreUnavailable
from inbox.store.dynamodb.connection import (
    ERRORS,
    PATIENCE,
    ConditionFailed,
    Connection,
    groups_of,
    is_throttled,
    may_have_happened,
    pause,
    translate_error,
)
from inbox.store.dynamodb.items import PENDING_COPIES
from inbox.store.dynamodb.layout import EVENTS, Item, by_sort_key, key_of, number, place_of

MAX_TOGETHER = 25
"""What BatchWriteItem takes."""

TOO_MANY_WAIT = 2 * MAX_TOGETHER
_MAX_UNDER_WAY = 4

Write = Callable[[Sequence[Item]], Sequence[Exception | None]]


class _Word(Enum):
    LEAD = "lead the next write"


class _Waiting:
    """`told` brings the word to lead, as often as that is due, and in the end how its own items fared."""

    __slots__ = ("items", "leads", "told")

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.leads = False
        self.told: SimpleQueue[_Word | Exception | None] = SimpleQueue()


class Gathering:
    """`write` answers an error, or None, for each item that it is given.

    `on_group` hears how many callers a write was for, once they have been told.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._mutex = threading.Lock()
        self._queue: deque[_Waiting] = deque()
        self._items_queued = 0
        self._under_way = 0
        self.on_group: Callable[[int], object] = lambda _callers: None

    def put(self, items: Sequence[Item]) -> None:
        """Returns when all of the items are stored."""
        waiting = _Waiting(items)
        with self._mutex:
            self._queue.append(waiting)
            self._items_queued += len(items)
            self._let_lead(waiting)
        # Bounded by the limits of the calls to DynamoDB: whoever leads always hands over. It does so also where another
        # write has taken its own items along meanwhile, since others wait to be led.
        while (word := waiting.told.get()) is _Word.LEAD:
            self._lead(waiting)
        if word is not None:
            raise word

    def _let_lead(self, waiting: _Waiting) -> None:
        goes_beside = self._items_queued >= TOO_MANY_WAIT and self._under_way < _MAX_UNDER_WAY
        # Where another one has told it to lead already, it can do so only once.
        if (self._under_way == 0 or goes_beside) and not waiting.leads:
            self._under_way += 1
            waiting.leads = True
            waiting.told.put(_Word.LEAD)

    def _lead(self, leader: _Waiting) -> None:
        with self._mutex:
            leader.leads = False
            group = self._next_group()
        items = [item for waiting in group for item in waiting.items]
        errors: Sequence[Exception | None] = [RuntimeError("The write was interrupted.")] * len(items)
        try:
            if items:
                errors = self._write(items)
        finally:
            self._finish(group, errors)
        if group:
            self.on_group(len(group))

    def _next_group(self) -> list[_Waiting]:
        """As many as fit into a batch, and always one: an event may have more copies than that."""
        group: list[_Waiting] = []
        room = MAX_TOGETHER
        while self._queue and (not group or len(self._queue[0].items) <= room):
            group.append(self._queue.popleft())
            room -= len(group[-1].items)
        self._items_queued -= MAX_TOGETHER - room
        return group

    def _finish(self, group: list[_Waiting], errors: Sequence[Exception | None]) -> None:
        remaining = iter(errors)
        for waiting in group:
            failed = [error for error in islice(remaining, len(waiting.items)) if error is not None]
            waiting.told.put(failed[0] if failed else None)
        # Last, so that those who were answered just now and come back at once are taken along.
        with self._mutex:
            self._under_way -= 1
            if self._queue:
                self._let_lead(self._queue[0])


# The conditions, and why.
_THERE = "attribute_exists(pk)"
_NOT_THERE = "attribute_not_exists(pk)"
# TTL deletes days late. An event past its time is no reason to refuse another one under its key.
_NOT_THERE_OR_EXPIRED = f"{_NOT_THERE} OR #ttl <= :now"
# Nobody has taken it yet.
_STILL_AS_WRITTEN = "gsi1sk = :status_key AND deliveries = :deliveries"


class Writing:
    """`on_new` hears of items that were not there before."""

    def __init__(self, connection: Connection, on_new: Callable[[Sequence[Item]], None] = lambda _items: None) -> None:
        self._connection = connection
        self._on_new = on_new

    def insert(self, item: Item, now_ms: int) -> Item | None:
        """Stores the item unless its key is taken. Returns the item that has taken it."""
        try:
            self._put(_NOT_THERE_OR_EXPIRED, item, **_at(now_ms))
        except ConditionFailed as failed:
            there = failed.there or self._read(key_of(item))
            # A retry after a lost response meets our own write: no two events have the same place.
            if place_of(there) != place_of(item):
                return there
        self._on_new([item])
        return None

    def insert_copy(self, copy: Item, now_ms: int) -> None:
        """Unless it is there already. Whoever wrote it then has counted it: all who write it give it the same place."""
        with suppress(ConditionFailed):
            self._put(_NOT_THERE_OR_EXPIRED, copy, **_at(now_ms))
            self._on_new([copy])

    def replace(self, item: Item, seen: Item) -> None:
        """Replaces an item unless it has changed since it was read."""
        as_seen = {":status_key": seen["gsi1sk"], ":deliveries": seen["deliveries"]}
        with suppress(ConditionFailed):
            self._put(_STILL_AS_WRITTEN, item, ExpressionAttributeValues=as_seen)

    def has_its_copies(self, item: Item) -> bool:
        """Writes down that an event waits for no copies any more. Whether it is still there."""
        try:
            self._connection.call(
                "update_item",
                TableName=self._connection.table(EVENTS),
                Key=key_of(item),
                UpdateExpression=f"REMOVE {PENDING_COPIES}",
                ConditionExpression=_THERE,
            )
        except ConditionFailed:
            return False
        return True

    def erase(self, keys: Sequence[Item]) -> list[Item]:
        """Deletes a few, and answers those that were there: where two erase at the same moment, each is one's only."""
        return [item for item in self._connection.at_once(self._erase, keys) if item is not None]

    def _erase(self, key: Item) -> Item | None:
        try:
            answer = self._connection.call(
                "delete_item",
                TableName=self._connection.table(EVENTS),
                Key=key,
                ConditionExpression=_THERE,
                ReturnValues="ALL_OLD",
            )
        except ConditionFailed:
            return None
        erased: Item = answer["Attributes"]
        return erased

    def delete(self, keys: Sequence[Item]) -> None:
        """Deletes many."""
        table = self._connection.table(EVENTS)
        for group in groups_of(MAX_TOGETHER, keys):
            waiting: dict[str, Any] = {table: [{"DeleteRequest": {"Key": key}} for key in group]}
            for attempt in range(PATIENCE):
                waiting = self._connection.call("batch_write_item", RequestItems=waiting).get("UnprocessedItems") or {}
                if not waiting:
                    break
                pause(attempt)
            else:
                raise StoreUnavailable("DynamoDB did not answer (UnprocessedItems).")

    def write_fresh(self, items: Sequence[Item]) -> list[StoreUnavailable | None]:
        """Writes items whose ids were made up just now, and answers an error for each that failed."""
        return [error for group in groups_of(MAX_TOGETHER, items) for error in self._write_and_tell(group)]

    def write_all_fresh(self, items: Sequence[Item]) -> None:
        """The same, up to the first batch that fails."""
        for group in groups_of(MAX_TOGETHER, items):
            for error in self._write_and_tell(group):
                if error is not None:
                    raise error

    def _write_and_tell(self, items: Sequence[Item]) -> list[StoreUnavailable | None]:
        errors = self._write_group(items)
        self._on_new([item for item, error in zip(items, errors, strict=True) if error is None])
        return errors

    def _write_group(self, items: Sequence[Item]) -> list[StoreUnavailable | None]:
        if len(items) == 1:
            return [self._insert_fresh(items[0])]
        table = self._connection.table(EVENTS)
        waiting = by_sort_key(items)
        for attempt in range(PATIENCE):
            requests = [{"PutRequest": {"Item": item}} for item in waiting.values()]
            try:
                # Once: where the answer is lost, a poll can take an event before the batch is sent again, and the
                # second write would bring it back as undelivered. So would the first, when it arrives late.
                answer = self._connection.call_once("batch_write_item", RequestItems={table: requests})
                unprocessed: list[dict[str, Any]] = (answer.get("UnprocessedItems") or {}).get(table, [])
                waiting = by_sort_key(each["PutRequest"]["Item"] for each in unprocessed)
            except ERRORS as error:
                translated = translate_error(error)
                if not isinstance(translated, StoreUnavailable):
                    raise
                if may_have_happened(error):
                    return self._looked_for(items, waiting, translated)
                if not is_throttled(error):
                    return [translated if item["sk"]["S"] in waiting else None for item in items]
            if not waiting:
                break
            pause(attempt)
        failed = StoreUnavailable("DynamoDB did not answer (UnprocessedItems).")
        return [failed if item["sk"]["S"] in waiting else None for item in items]

    def _looked_for(
        self, items: Sequence[Item], waiting: dict[str, Item], error: StoreUnavailable
    ) -> list[StoreUnavailable | None]:
        """What is there has been written. What is not may still be on its way, and must not meet a second write."""
        keys = [key_of(item) for item in waiting.values()]
        wanted = {"Keys": keys, "ConsistentRead": True, "ProjectionExpression": "pk, sk"}
        table = self._connection.table(EVENTS)
        try:
            # Once: whoever waits has waited for a whole call already.
            answer = self._connection.call_once("batch_get_item", RequestItems={table: wanted})
        except ERRORS:
            return [error if item["sk"]["S"] in waiting else None for item in items]
        missing = waiting.keys() - by_sort_key(answer["Responses"].get(table, [])).keys()
        return [error if item["sk"]["S"] in missing else None for item in items]

    def _insert_fresh(self, item: Item) -> StoreUnavailable | None:
        try:
            # The id is new, so the condition can only fail on our own write after a lost response.
            with suppress(ConditionFailed):
                self._put(_NOT_THERE, item)
        except StoreUnavailable as error:
            return error
        return None

    def _read(self, key: Item) -> Item:
        """Returns the item that a condition has met and that DynamoDB has not returned."""
        for item in self._connection.get_many(EVENTS, [key]):
            return item
        # It may have been our own write.
        raise StoreUnavailable("The event was deleted while it was being stored.")

    def _put(self, condition: str, item: Item, **expression: Any) -> None:
        self._connection.call(
            "put_item",
            TableName=self._connection.table(EVENTS),
            Item=item,
            ConditionExpression=condition,
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
            **expression,
        )


def _at(now_ms: int) -> dict[str, Any]:
    """What `_NOT_THERE_OR_EXPIRED` speaks of."""
    return {
        "ExpressionAttributeValues": {":now": number(now_ms // 1000)},
        "ExpressionAttributeNames": {"#ttl": "ttl"},
    }
