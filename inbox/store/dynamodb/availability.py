"""What a poll may have of an inbox: what is undelivered, and what has come back from a lease or a delay."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from inbox.domain.events import Order, Status
from inbox.store.dynamodb.changes import Change, Changes
from inbox.store.dynamodb.event_states import Entry, in_order
from inbox.store.dynamodb.layout import back_by, status_range
from inbox.store.dynamodb.shards import Shards
from inbox.store.dynamodb.spent import Spent
from inbox.store.dynamodb.status_index import StatusIndex

# Beyond what is wanted: a few stale entries then cost no second query, and the last one says whether there is more.
_SPARE = 10
# They are sorted by when they came back, and have to be all there before the oldest of them is known.
_MAX_BACK = 1_000
_MAX_BACK_READ = 10_000
# What has died is no reason to keep a poll waiting.
_MAX_BURIED = 200


@dataclass(frozen=True, slots=True)
class _Back:
    """What has come back, and what has lost its last lease."""

    alive: list[Entry]
    doomed: list[Entry]


class Availability:
    def __init__(self, shards: Shards, index: StatusIndex, changes: Changes, spent: Spent, max_deliveries: int) -> None:
        self._shards = shards
        self._index = index
        self._changes = changes
        self._spent = spent
        self._max_deliveries = max_deliveries

    def to_show(self, tenant_id: str, inbox: str, order: Order, wanted: int, now_ms: int) -> Iterator[Entry]:
        """In order, fetched as they are asked for; `wanted` says how many that will probably be."""
        return self._look(tenant_id, inbox, order, wanted, now_ms)[0]

    def to_claim(self, tenant_id: str, inbox: str, wanted: int, now_ms: int) -> Iterator[Entry]:
        """The same, without what this process knows to be gone. Writes down who has died."""
        entries, doomed = self._look(tenant_id, inbox, Order.OLDEST, wanted, now_ms, anew=True)
        # Where that fails, the next poll does it.
        buried = self._spent.without_them(doomed[:_MAX_BURIED])
        self._spent.add(buried)
        self._changes.make([Change(entry, entry.died()) for entry in buried], now_ms)
        return (entry for entry in entries if entry not in self._spent)

    def has_event(self, tenant_id: str, inbox: str, now_ms: int) -> bool:
        """Returns True if a claim would find an entry, which may be of an event that is to die. Writes nothing."""
        partitions = self._shards.of(tenant_id).all(inbox)
        ranges = [(back_by(now_ms), _SPARE), (status_range(Status.UNDELIVERED), _SPARE)]
        walks = chain(*self._index.walks(partitions, inbox, ranges, Order.OLDEST, now_ms))
        return any(entry not in self._spent for entry in chain(*walks))

    def _look(
        self, tenant_id: str, inbox: str, order: Order, wanted: int, now_ms: int, *, anew: bool = False
    ) -> tuple[Iterator[Entry], list[Entry]]:
        partitions = self._shards.of(tenant_id).all(inbox)
        ranges = [
            (back_by(now_ms), _MAX_BACK),
            (status_range(Status.UNDELIVERED), wanted // len(partitions) + _SPARE),
        ]
        back_walks, walks = self._index.walks(partitions, inbox, ranges, order, now_ms, anew)
        back = [self._sort_out(walk) for walk in back_walks]
        entries = in_order(order, walks, chain(*(each.alive for each in back)))
        return entries, list(chain(*(each.doomed for each in back)))

    def _sort_out(self, walk: Iterator[Entry]) -> _Back:
        back = _Back([], [])
        for entry in islice(walk, _MAX_BACK_READ):
            is_doomed = entry.is_doomed(self._max_deliveries)
            (back.doomed if is_doomed else back.alive).append(entry)
            if len(back.alive) == _MAX_BACK:
                break
        return back
