"""Putting events in, each by the cheapest road that keeps its promise."""

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from inbox.domain.events import NewEvent, PutResult, Status
from inbox.domain.inboxes import Inbox
from inbox.errors import EventTooLarge, IdempotencyConflict, StoreUnavailable
from inbox.store.dynamodb.connection import Connection, groups_of
from inbox.store.dynamodb.event_states import is_kept_only, kept_only, undelivered
from inbox.store.dynamodb.event_writer import MAX_TOGETHER, Gathering, Writing
from inbox.store.dynamodb.inboxes import Definitions
from inbox.store.dynamodb.items import PENDING_COPIES, copy_for, is_expired, is_too_large, pending_copies, to_item
from inbox.store.dynamodb.layout import EVENTS, Item, by_sort_key, event_type_of, key_of, place, place_of, text
from inbox.store.dynamodb.pending_counts import Counting
from inbox.store.dynamodb.shards import Shards


class Stamps:
    """Places that only rise, for one process.

    Nothing in DynamoDB counts for all processes without becoming a bottleneck, so the clocks decide: the caller's down
    to the millisecond, and below that the machine's monotonic clock, which all of its processes share.
    """

    def __init__(self) -> None:
        self._origin = secrets.token_hex(3)
        self._mutex = threading.Lock()
        self._newest_ms = 0
        self._tick = 0

    def take(self, now_ms: int, count: int) -> tuple[int, list[str]]:
        """The timestamp of events that are put together, and a place for each of them in their order."""
        with self._mutex:
            # A clock that stepped back must not put an event before those that came earlier.
            self._newest_ms = timestamp_ms = max(now_ms, self._newest_ms)
            first = max(time.monotonic_ns(), self._tick + 1)
            self._tick = first + count
        return timestamp_ms, [place(timestamp_ms, first + number, self._origin) for number in range(count)]


class Putting:
    def __init__(self, connection: Connection, shards: Shards, definitions: Definitions, counting: Counting) -> None:
        self._connection = connection
        self._shards = shards
        self._definitions = definitions
        self._stamps = Stamps()
        self._counting = counting
        self._writing = Writing(connection, counting.came)
        self._gathering = Gathering(self._writing.write_fresh)

    def set_batch_listener(self, on_batch: Callable[[int], object]) -> None:
        self._gathering.on_group = on_batch

    def put(self, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int) -> list[PutResult]:
        spread = self._shards.of(tenant_id)
        timestamp_ms, places = self._stamps.take(now_ms, len(events))
        definition = self._definitions.of(tenant_id)
        inboxes, in_default = definition.named, undelivered if definition.default_enabled else kept_only
        items = [
            to_item(
                tenant_id,
                spread.for_new(new.event_id, now_ms),
                new,
                timestamp_ms,
                place,
                in_default(place),
                expires_at_s,
            )
            | _pending(new, inboxes)
            for new, place in zip(events, places, strict=True)
        ]
        too_large = [position for position, item in enumerate(items) if is_too_large(item)]
        if too_large:
            raise EventTooLarge("An event is too large for DynamoDB, even compressed. Nothing was stored.", too_large)
        if len(items) == 1 and "fingerprint" not in items[0]:
            self._gathering.put(_with_copies(items[0], inboxes))
            return [_stored(items[0], items[0])]
        firsts = self._there_already(items, now_ms) if len(items) > 1 else {}
        for item in items:
            firsts.setdefault(_id(item), item)
        _refuse_conflicts(items, firsts)
        # A group after the other: a poll meanwhile sees them in order, and a failure leaves the fewest behind. A repeat
        # that finds some of them there makes the same groups, or one that is missing could come after the next ones.
        for group in groups_of(MAX_TOGETHER, items):
            self._put_group([item for item in group if firsts[_id(item)] is item], firsts, inboxes, now_ms)
        try:
            _refuse_conflicts(items, firsts)
        except IdempotencyConflict:
            if len(items) == 1:
                raise
            # Another event came under a key since we looked. What was put already stays, since others may count on it
            # by now: so this is not a clean refusal. That is what the sender gets when it tries again.
            raise StoreUnavailable("Another event came under an idempotency key at the same moment.") from None
        self._complete(firsts.values(), inboxes, now_ms)
        return [_stored(item, firsts[_id(item)]) for item in items]

    def _put_group(self, group: Sequence[Item], firsts: dict[str, Item], inboxes: Sequence[Inbox], now_ms: int) -> None:
        keyed = [item for item in group if "fingerprint" in item]
        others = self._connection.at_once(partial(self._writing.insert, now_ms=now_ms), keyed)
        firsts.update(by_sort_key(other for other in others if other is not None))
        fresh = [_with_copies(item, inboxes) for item in group if "fingerprint" not in item]
        self._writing.write_all_fresh(list(chain(*fresh)))

    def _complete(self, firsts: Iterable[Item], inboxes: Sequence[Inbox], now_ms: int) -> None:
        """Writes the copies that events with a key wait for, and then that they wait for none.

        Whoever put such an event may have ended before its copies were written. Then the repeat writes them.
        """
        waiting = [item for item in firsts if PENDING_COPIES in item]
        open_ones = {inbox.name for inbox in inboxes}
        copies = [
            [copy_for(name, item, undelivered(place_of(item))) for name in pending_copies(item) if name in open_ones]
            for item in waiting
        ]
        self._connection.at_once(partial(self._writing.insert_copy, now_ms=now_ms), chain(*copies))
        still_there = self._connection.at_once(self._writing.has_its_copies, waiting)
        # Erased meanwhile, and so are its copies.
        gone = chain(*(of_one for of_one, is_there in zip(copies, still_there, strict=True) if not is_there))
        self._counting.went(self._writing.erase([key_of(copy) for copy in gone]))

    def _there_already(self, items: Sequence[Item], now_ms: int) -> dict[str, Item]:
        keys = [key_of(item) for item in items if "fingerprint" in item]
        found = self._connection.get_many(EVENTS, keys)
        return by_sort_key(item for item in found if not is_expired(item, now_ms))


def _pending(event: NewEvent, inboxes: Sequence[Inbox]) -> dict[str, Any]:
    """What an event with a key says of its copies: they are written after it, once it is known to be the first."""
    names = [text(inbox.name) for inbox in inboxes if inbox.takes(event.event_type)]
    return {PENDING_COPIES: {"L": names}} if names and event.fingerprint is not None else {}


def _with_copies(item: Item, inboxes: Sequence[Inbox]) -> list[Item]:
    event_type, state = event_type_of(item), undelivered(place_of(item))
    return [item, *(copy_for(inbox.name, item, state) for inbox in inboxes if inbox.takes(event_type))]


def _id(item: Item) -> str:
    event_id: str = item["sk"]["S"]
    return event_id


def _refuse_conflicts(items: Sequence[Item], firsts: Mapping[str, Item]) -> None:
    """`firsts` has the item that stands under each id."""
    conflicts = [
        position
        for position, item in enumerate(items)
        if firsts[_id(item)].get("fingerprint") != item.get("fingerprint")
    ]
    if conflicts:
        raise IdempotencyConflict(conflicts)


def _stored(item: Item, first: Item) -> PutResult:
    return PutResult(
        event_id=_id(item),
        event_type=event_type_of(item),
        timestamp_ms=int(first["timestamp"]["N"]),
        replayed=first is not item,
        status=Status.DELIVERED if is_kept_only(first) else Status.UNDELIVERED,
    )
