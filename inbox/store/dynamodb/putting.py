"""Putting events in, each by the cheapest road that keeps its promise."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from inbox.errors import EventTooLarge, IdempotencyConflict
from inbox.events import Event, NewEvent, Status, Stored
from inbox.store.dynamodb.connection import Connection, groups_of
from inbox.store.dynamodb.gathering import MOST_TOGETHER, Gathering
from inbox.store.dynamodb.items import is_expired, is_too_large, to_item
from inbox.store.dynamodb.layout import EVENTS, Item, event_key
from inbox.store.dynamodb.shards import Shards, Spread
from inbox.store.dynamodb.stamps import Stamps
from inbox.store.dynamodb.writing import Writing


class Putting:
    def __init__(self, connection: Connection, shards: Shards) -> None:
        self._connection = connection
        self._shards = shards
        self._stamps = Stamps()
        self._writing = Writing(connection)
        self._gathering = Gathering(self._writing.write_fresh)

    def put(self, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int) -> list[Stored]:
        spread = self._shards.of(tenant_id)
        timestamp_ms, places = self._stamps.take(now_ms, len(events))
        items = [
            to_item(
                tenant_id,
                spread.for_new(new.event_id, now_ms),
                Event(new.event_id, new.event_type, timestamp_ms, Status.UNDELIVERED, 0, None, new.payload),
                place,
                expires_at_s,
                new.fingerprint,
            )
            for new, place in zip(events, places, strict=True)
        ]
        too_large = [position for position, item in enumerate(items) if is_too_large(item)]
        if too_large:
            raise EventTooLarge("An event is too large for DynamoDB, even compressed. Nothing was stored.", too_large)
        keyed = {position: item for position, item in enumerate(items) if "fingerprint" in item}
        first_of = self._put_keyed(spread, keyed, now_ms) if keyed else {}
        self._put_fresh([item for item in items if "fingerprint" not in item])
        return [_stored(item, first_of.get(position, item)) for position, item in enumerate(items)]

    def _put_fresh(self, items: list[Item]) -> None:
        if len(items) == 1:
            self._gathering.put(items[0])
            return
        # One after the other: where one fails, the fewer of them are there already, the better.
        for group in groups_of(MOST_TOGETHER, items):
            for error in self._writing.write_fresh(group):
                if error is not None:
                    raise error

    def _put_keyed(self, spread: Spread, keyed: Mapping[int, Item], now_ms: int) -> dict[int, Item]:
        """Keeps those whose keys are free, and answers for each position the item that stands under its key."""
        firsts: dict[str, Item] = {}
        if len(keyed) > 1 or spread.counts:
            firsts = self._there_already(spread, keyed.values(), now_ms)
        there = set(firsts)
        for item in keyed.values():
            firsts.setdefault(_id(item), item)
        _refuse_conflicts(keyed, firsts)
        ours = [item for event_id, item in firsts.items() if event_id not in there]
        others = self._connection.at_once(partial(self._writing.insert, now_ms=now_ms), ours)
        for item, other in zip(ours, others, strict=True):
            if other is not None:
                firsts[_id(item)] = other
        try:
            _refuse_conflicts(keyed, firsts)
        except IdempotencyConflict:
            # Another event came under the same key since we looked.
            for item in ours:
                if firsts[_id(item)] is item:
                    self._writing.take_back(item)
            raise
        return {position: firsts[_id(item)] for position, item in keyed.items()}

    def _there_already(self, spread: Spread, keyed: Iterable[Item], now_ms: int) -> dict[str, Item]:
        ids = dict.fromkeys(_id(item) for item in keyed)
        keys = [event_key(partition, event_id) for event_id in ids for partition in spread.may_hold(event_id)]
        found = self._connection.get_many(EVENTS, keys)
        return {_id(item): item for item in found if not is_expired(item, now_ms)}


def _id(item: Item) -> str:
    event_id: str = item["sk"]["S"]
    return event_id


def _refuse_conflicts(keyed: Mapping[int, Item], firsts: dict[str, Item]) -> None:
    conflicts = [
        position for position, item in keyed.items() if firsts[_id(item)].get("fingerprint") != item["fingerprint"]
    ]
    if conflicts:
        raise IdempotencyConflict(conflicts)


def _stored(item: Item, first: Item) -> Stored:
    return Stored(
        event_id=_id(item),
        event_type=item["event_type"]["S"] if "event_type" in item else None,
        timestamp_ms=int(first["timestamp"]["N"]),
        replayed=first is not item,
    )
