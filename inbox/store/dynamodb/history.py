"""Lookup, listing and replay of stored events."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from inbox.domain.events import DEFAULT_INBOX, Event, Listing, Order, PageSize, ReplayResult, Selection, Status
from inbox.errors import EventLeased, FieldError, InvalidRequest, StoreUnavailable
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.connection import MAX_BATCH_GET, Connection, groups_of
from inbox.store.dynamodb.event_states import KnownEvent, effective_state
from inbox.store.dynamodb.event_updates import (
    MAX_STATEMENTS,
    EventUpdate,
    EventUpdates,
    UpdateResult,
    raise_first_error,
)
from inbox.store.dynamodb.items import is_expired, to_event, to_known_event
from inbox.store.dynamodb.layout import EVENT_TYPE_INDEX, EVENTS, Item, text
from inbox.store.dynamodb.payloads import Payloads
from inbox.store.dynamodb.shards import Shards
from inbox.store.dynamodb.status_index import StatusIndex, merge_in_order

# A page may end after this many index entries, with fewer events than `size`, and a position.
_MAX_LISTED_ENTRIES = 10_000
_FIRST_PAGE_LIMIT = 100

_MAX_REPLAY_TRIES = 3
# Includes events of other types and leased events. MAX_QUERIES pages contain more entries.
_MAX_REPLAY_ENTRIES = 49_000
# Undelivered entries that a search for dead events reads.
_MAX_UNWRITTEN_DEATHS_READ = 10_000
_UNLISTED = (
    "Delivered events are not listed here (INBOX_LIST_DELIVERED is off). Select an `event_type` or another status, or"
    " look an event up by its ID."
)
_REPLAYABLE = frozenset({Status.DELIVERED, Status.DEAD})

OrderKeyAndKey = tuple[str, dict[str, Any] | None]
"""An event's order key and item key. The item key is None if the index entry shows that the event is not selected."""


@dataclass(eq=False)
class History:
    _connection: Connection
    _shards: Shards
    _index: StatusIndex
    _updates: EventUpdates
    _payloads: Payloads
    _max_deliveries: int
    lists_delivered: bool

    def get(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        item = self._read(tenant_id, inbox, event_id, now_ms)
        return None if item is None else self._to_event(item, now_ms)

    def page(
        self, tenant_id: str, selection: Selection, order: Order, size: PageSize, after: str | None, now_ms: int
    ) -> Listing:
        if after is not None and not layout.is_order_key(after):
            raise InvalidRequest([FieldError("/cursor", "`cursor` is not from this list.")])
        found = self._find(tenant_id, selection, order, after, now_ms)
        events: list[Event] = []
        payload_bytes = entries = 0
        position = ""
        while group := list(islice(found, min(MAX_BATCH_GET, size.events - len(events)))):
            found_items = self._connection.get_many(EVENTS, [key for _, key in group if key is not None])
            items = layout.by_sort_key(self._payloads.attach(found_items))
            for order_key, key in group:
                if payload_bytes >= size.payload_bytes:
                    return Listing(events, position)
                position = order_key
                event = None if key is None else self._selected_event(items.get(key["sk"]["S"]), selection, now_ms)
                if event is not None:
                    events.append(event)
                    payload_bytes += len(event.payload)
            entries += len(group)
            if len(events) == size.events or payload_bytes >= size.payload_bytes or entries >= _MAX_LISTED_ENTRIES:
                return Listing(events, position if next(found, None) is not None else None)
        return Listing(events, None)

    def _selected_event(self, item: Item | None, selection: Selection, now_ms: int) -> Event | None:
        """Returns None if the event is not selected any more: the indexes lag behind."""
        if item is None or is_expired(item, now_ms):
            return None
        event = to_event(item, now_ms, self._max_deliveries)
        return event if selection.status in (None, event.status) else None

    def _known_events(
        self, tenant_id: str, selection: Selection, statuses: frozenset[Status], order: Order, now_ms: int
    ) -> Iterator[KnownEvent]:
        """Yields events in order, among them all with these statuses. The caller checks the status of each."""
        first, last = layout.order_key_range(selection.since_ms, selection.until_ms)
        if first >= last:
            return iter(())
        written = [status for status in (Status.DELIVERED, Status.DEAD) if status in statuses]
        ranges = [layout.status_range(status, first, last) for status in written]
        if statuses != {Status.DELIVERED}:
            ranges += [layout.status_range(Status.UNDELIVERED, first, last), layout.status_range(Status.LEASED)]
        partitions = self._shards.get(tenant_id).index_partitions(selection.inbox)
        found = self._index.read(
            partitions, selection.inbox, [(each, _FIRST_PAGE_LIMIT) for each in ranges], order, now_ms
        )
        if statuses == {Status.DELIVERED}:
            return merge_in_order(order, chain(*found), ())
        *in_order, undelivered, leased = found
        if not statuses & {Status.UNDELIVERED, Status.LEASED}:
            # Only for deaths that no poll has written yet. They are old, and there may be many undelivered events.
            undelivered = [islice(each, _MAX_UNWRITTEN_DEATHS_READ) for each in undelivered]
        # Release 0.1.0 sorts leased events by the end of the lease, so all are read before the first is returned.
        by_lease_end = (event for event in chain(*leased) if first <= event.order_key < last)
        return merge_in_order(order, chain(*in_order, undelivered), by_lease_end)

    def _find(
        self, tenant_id: str, selection: Selection, order: Order, after: str | None, now_ms: int
    ) -> Iterator[OrderKeyAndKey]:
        if after is not None and order is Order.OLDEST:
            selection = replace(selection, since_ms=layout.timestamp_ms_of(after))
        elif after is not None:
            selection = replace(selection, until_ms=layout.timestamp_ms_of(after) + 1)
        statuses = frozenset(Status) if selection.status is None else frozenset({selection.status})
        if (
            selection.event_type is not None
            and selection.inbox == DEFAULT_INBOX
            and (selection.status is None or self._is_unlisted(selection, statuses))
        ):
            found = self._find_by_type(tenant_id, selection, selection.event_type, order)
        else:
            if selection.status is not None:
                self._refuse_unlisted(selection, statuses)
            events = self._known_events(tenant_id, selection, statuses, order, now_ms)
            found = (
                (event.order_key, event.key if self._is_selected(event, selection, statuses, now_ms) else None)
                for event in events
            )
        for order_key, key in found:
            if after is None or (order_key > after if order is Order.OLDEST else order_key < after):
                yield order_key, key

    def _is_selected(self, event: KnownEvent, selection: Selection, statuses: frozenset[Status], now_ms: int) -> bool:
        has_type = selection.event_type in (None, event.event_type)
        return has_type and event.status_at(now_ms, self._max_deliveries) in statuses

    def _is_unlisted(self, selection: Selection, statuses: frozenset[Status]) -> bool:
        return not self.lists_delivered and Status.DELIVERED in statuses and selection.inbox == DEFAULT_INBOX

    def _refuse_unlisted(self, selection: Selection, statuses: frozenset[Status]) -> None:
        if self._is_unlisted(selection, statuses):
            raise InvalidRequest([FieldError("/status", _UNLISTED)])

    def _find_by_type(
        self, tenant_id: str, selection: Selection, event_type: str, order: Order
    ) -> Iterator[OrderKeyAndKey]:
        first, last = layout.event_type_range(
            event_type, layout.order_key_range(selection.since_ms, selection.until_ms)
        )
        if first >= last:
            return iter(())
        queries = [
            self._connection.query_items(
                EVENTS,
                IndexName=EVENT_TYPE_INDEX,
                KeyConditionExpression="gsi2pk = :partition AND gsi2sk BETWEEN :first AND :last",
                ExpressionAttributeValues={":partition": text(partition), ":first": text(first), ":last": text(last)},
                ScanIndexForward=order is Order.OLDEST,
                Limit=_FIRST_PAGE_LIMIT,
            )
            for partition in self._shards.get(tenant_id).index_partitions(DEFAULT_INBOX)
        ]
        found = [((layout.order_key_in_type_index(item), layout.key_of(item)) for item in items) for items in queries]
        return heapq.merge(*found, key=lambda each: each[0], reverse=order is Order.NEWEST)

    def _known_events_of_type(
        self, tenant_id: str, selection: Selection, event_type: str, now_ms: int
    ) -> Iterator[KnownEvent]:
        for group in groups_of(MAX_BATCH_GET, self._find_by_type(tenant_id, selection, event_type, Order.OLDEST)):
            keys = [key for _, key in group if key is not None]
            items = layout.by_sort_key(self._connection.get_many(EVENTS, keys))
            for key in keys:
                item = items.get(key["sk"]["S"])
                if item is not None:
                    yield self._in_read_partition(tenant_id, DEFAULT_INBOX, to_known_event(item), now_ms)

    def _in_read_partition(self, tenant_id: str, inbox: str, event: KnownEvent, now_ms: int) -> KnownEvent:
        """Returns the event with a partition of the index that polls read.

        That of an event that the index did not list may belong to a sharding that was removed meanwhile.
        """
        shards = self._shards.get(tenant_id)
        if event.is_listed or event.index_partition in shards.index_partitions(inbox):
            return event
        shard = shards.place_for_new(event.event_id, now_ms, keyed=True).index_shard
        return replace(event, index_partition=layout.make_index_partition(tenant_id, inbox, shard))

    def replay(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        item = self._read(tenant_id, inbox, event_id, now_ms)
        for _ in range(_MAX_REPLAY_TRIES):
            if item is None:
                return None
            status = effective_state(item, now_ms, self._max_deliveries).status
            if status is Status.LEASED:
                raise EventLeased
            if status is Status.UNDELIVERED:
                return self._to_event(item, now_ms)
            event = self._in_read_partition(tenant_id, inbox, to_known_event(item), now_ms)
            (result,) = results = self._updates.apply([EventUpdate(event, event.replayed())], now_ms)
            raise_first_error(results)
            # `current` was written meanwhile by another call, or by our own if only its response was lost.
            item = result.item or result.current
        raise StoreUnavailable("Other requests kept changing the event.")

    def replay_all(self, tenant_id: str, selection: Selection, limit: int, now_ms: int) -> ReplayResult:
        statuses = _REPLAYABLE if selection.status is None else _REPLAYABLE & {selection.status}
        if not statuses:
            return ReplayResult(0, more=False)
        if self._is_unlisted(selection, statuses) and selection.event_type is not None:
            found = self._known_events_of_type(tenant_id, selection, selection.event_type, now_ms)
        else:
            self._refuse_unlisted(selection, statuses)
            found = self._known_events(tenant_id, selection, statuses, Order.OLDEST, now_ms)
        first = islice(found, _MAX_REPLAY_ENTRIES)
        replayable = (event for event in first if self._is_selected(event, selection, statuses, now_ms))
        count = 0
        while group := list(islice(replayable, min(MAX_STATEMENTS, limit - count))):
            updates = [EventUpdate(event, event.replayed()) for event in group]
            results = self._updates.apply(updates, now_ms)
            raise_first_error(results)
            count += sum(map(_was_replayed, updates, results))
        more = next(chain(replayable, found), None) is not None
        if more and not count:
            detail = f"None of the first {_MAX_REPLAY_ENTRIES} events can be replayed. Use a later `since`."
            raise InvalidRequest([FieldError("/since", detail)])
        return ReplayResult(count, more)

    def _to_event(self, item: Item, now_ms: int) -> Event | None:
        return next((to_event(each, now_ms, self._max_deliveries) for each in self._payloads.attach([item])), None)

    def _read(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Item | None:
        found = self._connection.get_many(EVENTS, self._shards.get(tenant_id).keys(event_id, inbox))
        return next((item for item in found if not is_expired(item, now_ms)), None)


def _was_replayed(update: EventUpdate, result: UpdateResult) -> bool:
    """Returns True also if only the response was lost, and the event has the state that the update writes."""
    if result.current is None or not result.is_in_doubt:
        return result.item is not None
    current = to_known_event(result.current)
    return current.is_waiting and current.deliveries == update.state.deliveries
