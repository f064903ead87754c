"""Looking back: an inbox's events in whatever status, by time."""

import heapq
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from inbox.domain.events import DEFAULT_INBOX, Event, Listing, Order, PageSize, ReplayResult, Selection, Status
from inbox.errors import EventLeased, FieldError, InvalidRequest, StoreUnavailable
from inbox.store.dynamodb.connection import READ_AT_ONCE, Connection
from inbox.store.dynamodb.event_states import AT_A_TIME, Change, Changes, Entry, raise_fault, standing
from inbox.store.dynamodb.items import is_expired, to_entry, to_event
from inbox.store.dynamodb.layout import (
    EVENT_TYPE_INDEX,
    EVENTS,
    Item,
    by_sort_key,
    is_place,
    key_of,
    place_in_type_index,
    places,
    status_range,
    text,
    timestamp_of,
    type_range,
    until_of,
)
from inbox.store.dynamodb.shards import Shards
from inbox.store.dynamodb.status_index import StatusIndex, in_order

# An answer may come with fewer events than were asked for, and say where to go on.
_MAX_EXAMINED = 10_000

_AT_FIRST = 100

Seen = tuple[str, dict[str, Any] | None]
"""A place in the inbox, and the key of what stands there, unless that is known not to be wanted."""


class History:
    def __init__(self, connection: Connection, shards: Shards, index: StatusIndex, max_deliveries: int) -> None:
        self._connection = connection
        self._shards = shards
        self._index = index
        self._max_deliveries = max_deliveries

    def page(
        self, tenant_id: str, selection: Selection, order: Order, size: PageSize, after: str | None, now_ms: int
    ) -> Listing:
        if after is not None and not is_place(after):
            raise InvalidRequest([FieldError("/cursor", "Not a cursor of this list.")])
        seen = self._in_order(tenant_id, selection, order, after, now_ms)
        events: list[Event] = []
        payload_bytes = examined = 0
        position = ""
        while group := list(islice(seen, min(READ_AT_ONCE, size.events - len(events)))):
            items = by_sort_key(self._connection.get_many(EVENTS, [key for _, key in group if key is not None]))
            for place, key in group:
                if payload_bytes >= size.payload_bytes:
                    return Listing(events, position)
                position = place
                event = None if key is None else self._event(items.get(key["sk"]["S"]), selection, now_ms)
                if event is not None:
                    events.append(event)
                    payload_bytes += len(event.payload)
            examined += len(group)
            if len(events) == size.events or payload_bytes >= size.payload_bytes or examined >= _MAX_EXAMINED:
                return Listing(events, position if next(seen, None) is not None else None)
        return Listing(events, None)

    def _event(self, item: Item | None, selection: Selection, now_ms: int) -> Event | None:
        """The event, where it is still what is looked for: the indexes lag behind."""
        if item is None or is_expired(item, now_ms):
            return None
        event = to_event(item, now_ms, self._max_deliveries)
        return event if selection.status in (None, event.status) else None

    def entries(
        self, tenant_id: str, selection: Selection, statuses: frozenset[Status], order: Order, now_ms: int
    ) -> Iterator[Entry]:
        """What `status-index` shows of these statuses, by place; and of the leases, since they may have run out."""
        first, last = places(selection.since_ms, selection.until_ms)
        if first >= last:
            return iter(())
        ranges = [status_range(status, first, last) for status in Status if status in statuses - {Status.LEASED}]
        # They are sorted by when they end, so the order of their places is known once all are there.
        leased = [] if statuses == {Status.DELIVERED} else [status_range(Status.LEASED)]
        partitions = self._shards.of(tenant_id).all(selection.inbox)
        walks = self._index.walks(
            partitions, selection.inbox, [(range_, _AT_FIRST) for range_ in ranges + leased], order, now_ms
        )
        by_end = (entry for walk in chain(*walks[len(ranges) :]) for entry in walk if first <= entry.place < last)
        return in_order(order, chain(*walks[: len(ranges)]), by_end)

    def _in_order(
        self, tenant_id: str, selection: Selection, order: Order, after: str | None, now_ms: int
    ) -> Iterator[Seen]:
        if after is not None and order is Order.OLDEST:
            selection = replace(selection, since_ms=timestamp_of(after))
        elif after is not None:
            selection = replace(selection, until_ms=timestamp_of(after) + 1)
        if selection.event_type is not None and selection.status is None and selection.inbox == DEFAULT_INBOX:
            found = self._of_type(tenant_id, selection, selection.event_type, order)
        else:
            statuses = frozenset(Status) if selection.status is None else frozenset({selection.status})
            entries = self.entries(tenant_id, selection, statuses, order, now_ms)
            found = ((entry.place, entry.key if is_of_type(entry, selection) else None) for entry in entries)
        for place, key in found:
            if after is None or (place > after if order is Order.OLDEST else place < after):
                yield place, key

    def _of_type(self, tenant_id: str, selection: Selection, event_type: str, order: Order) -> Iterator[Seen]:
        first, last = type_range(event_type, *places(selection.since_ms, selection.until_ms))
        if first >= last:
            return iter(())
        walks = [
            self._connection.walk(
                TableName=self._connection.table(EVENTS),
                IndexName=EVENT_TYPE_INDEX,
                KeyConditionExpression="gsi2pk = :partition AND gsi2sk BETWEEN :first AND :last",
                ExpressionAttributeValues={":partition": text(partition), ":first": text(first), ":last": text(last)},
                ScanIndexForward=order is Order.OLDEST,
                Limit=_AT_FIRST,
            )
            for partition in self._shards.of(tenant_id).all(DEFAULT_INBOX)
        ]
        found = [((place_in_type_index(item), key_of(item)) for item in walk) for walk in walks]
        return heapq.merge(*found, key=lambda seen: seen[0], reverse=order is Order.NEWEST)


def is_of_type(entry: Entry, selection: Selection) -> bool:
    return selection.event_type in (None, entry.event_type)


_TRIES = 3
# Events of other types, and leases, lie between those that are looked for. It is less than a walk may read.
_MAX_REPLAY_EXAMINED = 49_000
_REPLAYABLE = frozenset({Status.DELIVERED, Status.DEAD})


class Replaying:
    def __init__(self, changes: Changes, history: History, max_deliveries: int) -> None:
        self._changes = changes
        self._history = history
        self._max_deliveries = max_deliveries

    def replay(self, item: Item, now_ms: int) -> Event | None:
        for _ in range(_TRIES):
            status = standing(item, now_ms, self._max_deliveries).status
            if status is Status.LEASED:
                raise EventLeased
            if status is Status.UNDELIVERED:
                return to_event(item, now_ms, self._max_deliveries)
            entry = to_entry(item)
            (outcome,) = outcomes = self._changes.make([Change(entry, entry.replayed())], now_ms)
            raise_fault(outcomes)
            if outcome.item is None and outcome.met is None:
                return None
            # Somebody has changed it meanwhile, or we have, and only the answer was lost.
            item = outcome.item or outcome.met or item
        raise StoreUnavailable("The event kept changing.")

    def replay_all(self, tenant_id: str, selection: Selection, limit: int, now_ms: int) -> ReplayResult:
        statuses = _REPLAYABLE if selection.status is None else _REPLAYABLE & {selection.status}
        if not statuses:
            return ReplayResult(0, more=False)
        walk = self._history.entries(tenant_id, selection, statuses, Order.OLDEST, now_ms)
        examined = islice(walk, _MAX_REPLAY_EXAMINED)
        entries = (entry for entry in examined if is_of_type(entry, selection) and self._is_over(entry, now_ms))
        count = 0
        while group := list(islice(entries, min(AT_A_TIME, limit - count))):
            outcomes = self._changes.make([Change(entry, entry.replayed()) for entry in group], now_ms)
            raise_fault(outcomes)
            count += sum(outcome.item is not None for outcome in outcomes)
        more = next(chain(entries, walk), None) is not None
        if more and not count:
            raise InvalidRequest(
                [FieldError("/since", "There is more before the first of them than one call looks through.")]
            )
        return ReplayResult(count, more)

    def _is_over(self, entry: Entry, now_ms: int) -> bool:
        """Delivered or dead: of the leases only those that were the last and have run out."""
        until_ms = until_of(entry.status_key)
        return until_ms is None or (until_ms <= now_ms and entry.is_doomed(self._max_deliveries))
