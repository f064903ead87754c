"""Writes and deletes items of events: one by one on a condition, or new ones in batches without one.

`WriteBatcher` lets concurrent requests share a batch.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from queue import SimpleQueue
from typing import Any

from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import layout, writes
from inbox.store.dynamodb.connection import (
    AWS_ERRORS,
    MAX_BATCH_WRITE,
    MAX_TRIES,
    ConditionFailed,
    Connection,
    back_off,
    groups_of,
    is_throttled,
    may_have_succeeded,
    no_result,
    translate_error,
)
from inbox.store.dynamodb.event_updates import unchanged
from inbox.store.dynamodb.items import PENDING_COPIES, is_expired, to_known_event
from inbox.store.dynamodb.layout import EVENTS, Item, number

_EXISTS = "attribute_exists(pk)"
_NEW = "attribute_not_exists(pk)"
# TTL deletes days late, and an expired event must not block its idempotency key.
_EXPIRED = "#ttl <= :now"
_NEW_OR_EXPIRED = f"{_NEW} OR {_EXPIRED}"


class EventWriter:
    """`on_new` is called with items that did not exist before."""

    def __init__(self, connection: Connection, on_new: Callable[[Sequence[Item]], None] = lambda _items: None) -> None:
        self._connection = connection
        self._table = connection.table(EVENTS)
        self._on_new = on_new

    def insert(self, item: Item, now_ms: int, contested_keys: Sequence[Item]) -> Item | None:
        """Stores the item unless one exists under its key or one of `contested_keys`, which may contain its own key.

        Returns the existing item, or None if there was none.
        """
        other_keys = [key for key in contested_keys if key != layout.key_of(item)]
        try:
            self._put_unless_stored(item, now_ms, other_keys)
        except ConditionFailed as failed:
            # DynamoDB does not always return the item that made a condition fail, and never that of a transaction.
            keys = [layout.key_of(item), *other_keys]
            found = [failed.item] if failed.item else self._connection.get_many(EVENTS, keys)
            existing = next((each for each in found if not is_expired(each, now_ms)), None)
            if existing is None:
                # It may have been our own write.
                raise StoreUnavailable("The event was deleted while it was being stored.") from None
            # Order keys are unique: with the same one it is our own write, repeated after a lost response.
            if layout.order_key_of(existing) != layout.order_key_of(item):
                return existing
        self._on_new([item])
        return None

    def insert_copy(self, copy: Item, now_ms: int) -> None:
        """Stores the copy unless it exists. Then another process wrote and counted it."""
        with suppress(ConditionFailed):
            self._put_unless_stored(copy, now_ms, [])
            self._on_new([copy])

    def replace(self, item: Item, known_item: Item) -> None:
        """Replaces the item unless it has changed since it was read as `known_item`."""
        self._connection.try_write(writes.put(self._table, item, *unchanged(to_known_event(known_item))))

    def clear_pending_copies(self, item: Item) -> bool:
        """Records that all copies are written. Returns False if the event was erased."""
        update = writes.update(self._table, layout.key_of(item), {PENDING_COPIES: None}, _EXISTS)
        return self._connection.try_write(update)

    def delete_returning(self, keys: Sequence[Item]) -> list[Item]:
        """Deletes a few items and returns those that existed. Of concurrent calls only one returns an item."""
        return [item for item in self._connection.map_parallel(self._delete_one, keys) if item is not None]

    def _delete_one(self, key: Item) -> Item | None:
        try:
            # Without the condition, DynamoDB Local returns the item to several concurrent calls.
            response = self._connection.write(writes.delete(self._table, key, _EXISTS), ReturnValues="ALL_OLD")
        except ConditionFailed:
            return None
        item: Item = response["Attributes"]
        return item

    def delete_many(self, keys: Sequence[Item]) -> None:
        """Deletes items in batches, whether they exist or not."""
        for group in groups_of(MAX_BATCH_WRITE, keys):
            request = {self._table: [{"DeleteRequest": {"Key": key}} for key in group]}
            self._connection.call_batch("batch_write_item", request, "UnprocessedItems")

    def put_new(self, items: Sequence[Item]) -> list[StoreUnavailable | None]:
        """Writes items with newly generated IDs. Returns an error for each that failed."""
        return [error for group in groups_of(MAX_BATCH_WRITE, items) for error in self._put_group(group)]

    def put_all_new(self, items: Sequence[Item]) -> None:
        """Like `put_new`, but raises the first error and does not begin further batches."""
        for group in groups_of(MAX_BATCH_WRITE, items):
            for error in self._put_group(group):
                if error is not None:
                    raise error

    def _put_group(self, items: Sequence[Item]) -> list[StoreUnavailable | None]:
        errors = [self._put_new_item(items[0])] if len(items) == 1 else self._put_batch(items)
        self._on_new([item for item, error in zip(items, errors, strict=True) if error is None])
        return errors

    def _put_batch(self, items: Sequence[Item]) -> list[StoreUnavailable | None]:
        def errors(failed: set[str], error: StoreUnavailable) -> list[StoreUnavailable | None]:
            return [error if item["sk"]["S"] in failed else None for item in items]

        remaining = layout.by_sort_key(items)
        for attempt in range(MAX_TRIES):
            requests = [{"PutRequest": {"Item": item}} for item in remaining.values()]
            try:
                # Without retries: after a lost response a poll may have claimed an event, and the second write, or the
                # first if it arrives late, would make it undelivered again.
                response = self._connection.call_once("batch_write_item", RequestItems={self._table: requests})
                unprocessed: list[dict[str, Any]] = (response.get("UnprocessedItems") or {}).get(self._table, [])
                remaining = layout.by_sort_key(each["PutRequest"]["Item"] for each in unprocessed)
            except AWS_ERRORS as error:
                unavailable = translate_error(error)
                if not isinstance(unavailable, StoreUnavailable):
                    raise
                if may_have_succeeded(error):
                    return errors(self._find_missing(remaining), unavailable)
                if not is_throttled(error):
                    return errors(set(remaining), unavailable)
            if not remaining:
                break
            back_off(attempt)
        return errors(set(remaining), no_result("UnprocessedItems"))

    def _find_missing(self, items: dict[str, Item]) -> set[str]:
        """Returns the sort keys of items that are not stored. Do not write them again: they may still arrive."""
        keys = [layout.key_of(item) for item in items.values()]
        request = {"Keys": keys, "ConsistentRead": True, "ProjectionExpression": "pk, sk"}
        try:
            # Without retries: the client has already waited for a whole call.
            response = self._connection.call_once("batch_get_item", RequestItems={self._table: request})
        except AWS_ERRORS:
            return set(items)
        return items.keys() - layout.by_sort_key(response["Responses"].get(self._table, [])).keys()

    def _put_new_item(self, item: Item) -> StoreUnavailable | None:
        try:
            # The ID is new, so the condition can only fail on our own write, repeated after a lost response.
            self._connection.try_write(writes.put(self._table, item, _NEW))
        except StoreUnavailable as error:
            return error
        return None

    def _put_unless_stored(self, item: Item, now_ms: int, other_keys: Sequence[Item]) -> None:
        condition, values, names = _NEW_OR_EXPIRED, {":now": number(now_ms // 1000)}, {"#ttl": "ttl"}
        put = writes.put(self._table, item, condition, values, names)
        if not other_keys:
            self._connection.write(put, ReturnValuesOnConditionCheckFailure="ALL_OLD")
            return
        checks = [writes.check(self._table, key, condition, values, names) for key in other_keys]
        self._connection.transact(put, *checks)


PARALLEL_WRITE_THRESHOLD = 2 * MAX_BATCH_WRITE
_MAX_PARALLEL_WRITES = 4


class _Message(Enum):
    LEAD = "lead the next write"


@dataclass(eq=False, slots=True)
class _Request:
    """`messages` receives LEAD whenever the request's thread is to write a batch, and finally its error or None."""

    items: Sequence[Item]
    is_leader: bool = False
    messages: SimpleQueue[_Message | Exception | None] = field(default_factory=SimpleQueue)


class WriteBatcher:
    """Writes the items of concurrent requests together.

    The first request is written at once, alone. Requests that arrive meanwhile wait and go with the next batch, which
    the thread of the first of them writes: no thread of its own, and no delay. A further batch only starts in parallel
    if PARALLEL_WRITE_THRESHOLD items wait, because a call costs nearly the same CPU for one event as for 25.

    `write` returns an error or None for each item. `on_batch` is called with the number of requests of a batch.
    """

    def __init__(self, write: Callable[[Sequence[Item]], Sequence[Exception | None]]) -> None:
        self._write = write
        self._mutex = threading.Lock()
        self._queue: deque[_Request] = deque()
        self._writes = 0
        self.on_batch: Callable[[int], object] = lambda _requests: None

    def put(self, items: Sequence[Item]) -> None:
        """Returns once all items are stored."""
        request = _Request(items)
        with self._mutex:
            self._queue.append(request)
            self._start_write(request)
        # Ends, because calls to DynamoDB time out and every leader hands over. A thread leads even if another batch has
        # included its own items by then, because other requests wait for it.
        while (message := request.messages.get()) is _Message.LEAD:
            self._lead(request)
        if message is not None:
            raise message

    def _start_write(self, request: _Request) -> None:
        items = sum(len(queued.items) for queued in self._queue)
        may_write = self._writes == 0 or (items >= PARALLEL_WRITE_THRESHOLD and self._writes < _MAX_PARALLEL_WRITES)
        if may_write and not request.is_leader:
            self._writes += 1
            request.is_leader = True
            request.messages.put(_Message.LEAD)

    def _lead(self, leader: _Request) -> None:
        with self._mutex:
            leader.is_leader = False
            batch = self._next_batch()
        items = [item for request in batch for item in request.items]
        errors: Sequence[Exception | None] = [RuntimeError("The write was interrupted.")] * len(items)
        try:
            if items:
                errors = self._write(items)
        finally:
            self._finish(batch, errors)
        if batch:
            self.on_batch(len(batch))

    def _next_batch(self) -> list[_Request]:
        """Removes and returns queued requests that fit into a batch, at least one: an event may have more copies."""
        batch: list[_Request] = []
        room = MAX_BATCH_WRITE
        while self._queue and (not batch or len(self._queue[0].items) <= room):
            batch.append(self._queue.popleft())
            room -= len(batch[-1].items)
        return batch

    def _finish(self, batch: list[_Request], errors: Sequence[Exception | None]) -> None:
        remaining = iter(errors)
        for request in batch:
            failed = [error for error in islice(remaining, len(request.items)) if error is not None]
            request.messages.put(failed[0] if failed else None)
        # Last, so that requests that follow at once on the responses go with the next batch.
        with self._mutex:
            self._writes -= 1
            if self._queue:
                self._start_write(self._queue[0])
