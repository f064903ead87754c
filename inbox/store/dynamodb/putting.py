"""Putting events in, each by the cheapest road that keeps its promise."""

from collections.abc import Mapping, Sequence
from functools import partial

from inbox.errors import EventTooLarge, IdempotencyConflict, StoreUnavailable
from inbox.events import Event, NewEvent, Status, Stored
from inbox.store.dynamodb.connection import Connection, groups_of
from inbox.store.dynamodb.gathering import MOST_TOGETHER, Gathering
from inbox.store.dynamodb.items import is_expired, is_too_large, to_item
from inbox.store.dynamodb.layout import EVENTS, Item, by_id, key_of
from inbox.store.dynamodb.shards import Shards
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
        if len(items) == 1 and "fingerprint" not in items[0]:
            self._gathering.put(items[0])
            return [_stored(items[0], items[0])]
        firsts = self._there_already(items, now_ms) if len(items) > 1 else {}
        for item in items:
            firsts.setdefault(_id(item), item)
        _refuse_conflicts(items, firsts)
        # A group after the other: a poll meanwhile sees them in order, and a failure leaves the fewest behind.
        for group in groups_of(MOST_TOGETHER, [item for item in items if firsts[_id(item)] is item]):
            self._put_group(group, firsts, now_ms)
        try:
            _refuse_conflicts(items, firsts)
        except IdempotencyConflict:
            if len(items) == 1:
                raise
            # Another event came under a key since we looked. What was put already stays, since others may count on it
            # by now: so this is not a clean refusal. That is what the sender gets when it tries again.
            raise StoreUnavailable("Another event came under an idempotency key at the same moment.") from None
        return [_stored(item, firsts[_id(item)]) for item in items]

    def _put_group(self, group: Sequence[Item], firsts: dict[str, Item], now_ms: int) -> None:
        keyed = [item for item in group if "fingerprint" in item]
        others = self._connection.at_once(partial(self._writing.insert, now_ms=now_ms), keyed)
        firsts.update(by_id(other for other in others if other is not None))
        self._writing.write_all_fresh([item for item in group if "fingerprint" not in item])

    def _there_already(self, items: Sequence[Item], now_ms: int) -> dict[str, Item]:
        keys = [key_of(item) for item in items if "fingerprint" in item]
        found = self._connection.get_many(EVENTS, keys)
        return by_id(item for item in found if not is_expired(item, now_ms))


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


def _stored(item: Item, first: Item) -> Stored:
    return Stored(
        event_id=_id(item),
        event_type=item["event_type"]["S"] if "event_type" in item else None,
        timestamp_ms=int(first["timestamp"]["N"]),
        replayed=first is not item,
    )
