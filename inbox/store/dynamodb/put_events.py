"""Stores new events and their copies, each in the cheapest way that keeps the promise of `EventStore.put`."""

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from inbox.domain.events import DEFAULT_INBOX, NewEvent, PutResult, Status
from inbox.domain.inboxes import Inbox
from inbox.errors import EventTooLarge, IdempotencyConflict, StoreUnavailable
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.connection import MAX_BATCH_WRITE, Connection, groups_of
from inbox.store.dynamodb.event_states import EventState, is_stored_only, new_state
from inbox.store.dynamodb.event_writer import EventWriter, WriteBatcher
from inbox.store.dynamodb.inboxes import InboxCache
from inbox.store.dynamodb.items import PENDING_COPIES, copy_for, is_expired, is_too_large, to_item
from inbox.store.dynamodb.layout import EVENTS, Item, text, text_in
from inbox.store.dynamodb.payloads import PAYLOAD_KEY, Payloads
from inbox.store.dynamodb.pending_counts import EventCounter
from inbox.store.dynamodb.shards import Shards, TenantShards


class EventOrder:
    """Creates order keys that only increase within a process.

    A counter in DynamoDB shared by all processes would be a bottleneck, so clocks decide: the given time down to the
    millisecond, and below that the machine's monotonic clock, which all of its processes share.
    """

    def __init__(self) -> None:
        self._origin = secrets.token_hex(3)
        self._mutex = threading.Lock()
        self._latest_ms = 0
        self._sequence = 0

    def next(self, now_ms: int, count: int) -> tuple[int, list[str]]:
        """Returns the timestamp of events that are put together, and an order key for each."""
        with self._mutex:
            # If the clock stepped back, the events must not be ordered before earlier ones.
            self._latest_ms = timestamp_ms = max(now_ms, self._latest_ms)
            first = max(time.monotonic_ns(), self._sequence + 1)
            self._sequence = first + count
        return timestamp_ms, [
            layout.make_order_key(timestamp_ms, first + number, self._origin) for number in range(count)
        ]


class PutEvents:
    def __init__(
        self,
        connection: Connection,
        shards: Shards,
        inboxes: InboxCache,
        counter: EventCounter,
        payloads: Payloads,
    ) -> None:
        self._connection = connection
        self._payloads = payloads
        self._shards = shards
        self._inboxes = inboxes
        self._order = EventOrder()
        self._counter = counter
        self._writer = EventWriter(connection, counter.count_received)
        self._batcher = WriteBatcher(self._writer.put_new)

    def set_batch_listener(self, on_batch: Callable[[int], object]) -> None:
        self._batcher.on_batch = on_batch

    def put(self, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int) -> list[PutResult]:
        shards = self._shards.get(tenant_id)
        timestamp_ms, order_keys = self._order.next(now_ms, len(events))
        inboxes = self._inboxes.get(tenant_id)
        status = Status.UNDELIVERED if inboxes.default_enabled else Status.DELIVERED
        items = [
            to_item(
                tenant_id,
                shards.place_for_new(event.event_id, now_ms, keyed=event.fingerprint is not None),
                event,
                timestamp_ms,
                order_key,
                new_state(status, order_key),
                expires_at_s,
            )
            | _pending_copies(event, inboxes.named)
            for event, order_key in zip(events, order_keys, strict=True)
        ]
        too_large = [position for position, item in enumerate(items) if is_too_large(item)]
        if too_large:
            raise EventTooLarge("An event is too large for DynamoDB, even compressed. Nothing was stored.", too_large)
        payloads = layout.by_sort_key(self._payloads.detach(items))
        if len(items) == 1 and "fingerprint" not in items[0]:
            if payloads:
                self._payloads.write(list(payloads.values()))
            self._batcher.put(_with_copies(items[0], inboxes.named))
            return [_to_result(items[0], items[0])]
        return self._put_several(shards, items, payloads, inboxes.named, now_ms)

    def _put_several(
        self,
        shards: TenantShards,
        items: Sequence[Item],
        payloads: Mapping[str, Item],
        inboxes: Sequence[Inbox],
        now_ms: int,
    ) -> list[PutResult]:
        """Stores a batch, or an event with an idempotency key."""
        # The item stored under each ID: an earlier event with the same idempotency key, or the new one. The write of a
        # single event finds an earlier one under the same key, but not where events were stored before a sharding, and
        # not before the payload would be written in vain.
        keyed = [item for item in items if "fingerprint" in item]
        keys = [
            key
            for item in keyed
            for key in shards.keys_of_keyed(_id(item))
            if len(items) > 1 or payloads or key != layout.key_of(item)
        ]
        found = self._connection.get_many(EVENTS, keys)
        stored = layout.by_sort_key(item for item in found if not is_expired(item, now_ms))
        for item in items:
            stored.setdefault(_id(item), item)
        _refuse_conflicts(items, stored)
        # One group after the other, so that polls meanwhile see the events in order, and a failure leaves as few as
        # possible. A repeat forms the same groups, even if some events exist, or a missing one could come too late.
        for group in groups_of(MAX_BATCH_WRITE, items):
            new = [item for item in group if stored[_id(item)] is item]
            self._payloads.write([payloads[item[PAYLOAD_KEY]["S"]] for item in new if PAYLOAD_KEY in item])
            self._put_group(shards, new, stored, inboxes, now_ms)
        try:
            _refuse_conflicts(items, stored)
        except IdempotencyConflict:
            if len(items) == 1:
                raise
            # Another event was stored under a key since we read it. The events that are already stored remain, because
            # other requests may have reported them as stored. If the client retries, it gets the conflict.
            raise StoreUnavailable("Another request used one of the idempotency keys at the same time.") from None
        self._write_pending_copies(stored.values(), inboxes, now_ms)
        return [_to_result(item, stored[_id(item)]) for item in items]

    def _put_group(
        self,
        shards: TenantShards,
        group: Sequence[Item],
        stored: dict[str, Item],
        inboxes: Sequence[Inbox],
        now_ms: int,
    ) -> None:
        def insert(item: Item) -> Item | None:
            return self._writer.insert(item, now_ms, shards.contested_keys(_id(item), DEFAULT_INBOX, now_ms))

        existing = self._connection.map_parallel(insert, [item for item in group if "fingerprint" in item])
        stored.update(layout.by_sort_key(item for item in existing if item is not None))
        new = [_with_copies(item, inboxes) for item in group if "fingerprint" not in item]
        self._writer.put_all_new(list(chain(*new)))

    def _write_pending_copies(self, items: Iterable[Item], inboxes: Sequence[Inbox], now_ms: int) -> None:
        """Writes the missing copies of events with idempotency keys, also of an event whose process ended before."""
        pending = [item for item in items if PENDING_COPIES in item]
        open_inboxes = {inbox.name for inbox in inboxes}
        copies = [
            [
                copy_for(name["S"], item, _undelivered_state(item))
                for name in item[PENDING_COPIES]["L"]
                if name["S"] in open_inboxes
            ]
            for item in pending
        ]
        self._connection.map_parallel(partial(self._writer.insert_copy, now_ms=now_ms), chain(*copies))
        still_exist = self._connection.map_parallel(self._writer.clear_pending_copies, pending)
        # If the event was erased meanwhile, its copies are erased too.
        orphans = chain(*(of_event for of_event, exists in zip(copies, still_exist, strict=True) if not exists))
        self._counter.count_deleted(self._writer.delete_returning([layout.key_of(copy) for copy in orphans]))


def _pending_copies(event: NewEvent, inboxes: Sequence[Inbox]) -> dict[str, Any]:
    """Returns an attribute for an event with an idempotency key: its copies are written after it is known to be new."""
    names = [text(inbox.name) for inbox in inboxes if inbox.receives(event.event_type)]
    return {PENDING_COPIES: {"L": names}} if names and event.fingerprint is not None else {}


def _with_copies(item: Item, inboxes: Sequence[Inbox]) -> list[Item]:
    event_type, state = text_in(item, "event_type"), _undelivered_state(item)
    return [item, *(copy_for(inbox.name, item, state) for inbox in inboxes if inbox.receives(event_type))]


def _undelivered_state(item: Item) -> EventState:
    return new_state(Status.UNDELIVERED, layout.order_key_of(item))


def _id(item: Item) -> str:
    event_id: str = item["sk"]["S"]
    return event_id


def _refuse_conflicts(items: Sequence[Item], stored: Mapping[str, Item]) -> None:
    conflicts = [
        position
        for position, item in enumerate(items)
        if stored[_id(item)].get("fingerprint") != item.get("fingerprint")
    ]
    if conflicts:
        raise IdempotencyConflict(conflicts)


def _to_result(item: Item, stored: Item) -> PutResult:
    return PutResult(
        event_id=_id(item),
        event_type=text_in(item, "event_type"),
        timestamp_ms=int(stored["timestamp"]["N"]),
        repeated=stored is not item,
        status=Status.DELIVERED if is_stored_only(stored) else Status.UNDELIVERED,
    )
