"""Finds the events that a poll can claim: undelivered, or with a lease or delay that has ended.

The index may list events for minutes after they were claimed. A failed condition costs as much as a write, so a process
remembers which entries are outdated.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain

from cachetools import TTLCache

from inbox.domain.events import Order, Status
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.event_states import KnownEvent
from inbox.store.dynamodb.event_updates import EventUpdate, EventUpdates, UpdateResult
from inbox.store.dynamodb.shards import Shards
from inbox.store.dynamodb.status_index import StatusIndex, merge_in_order

# Entries read beyond the page size. A few outdated entries then cost no second query, and the last one shows if there
# are more events.
_SPARE_ENTRIES = 10
# The poll waits until these deaths are written; later polls write the rest.
_MAX_DEATHS_PER_POLL = 200

_MAX_OUTDATED_ENTRIES = 100_000
_OUTDATED_SECONDS = 900


class OutdatedEntries:
    """Entries whose events this process has claimed, or has found claimed by another.

    Keeps a hash of each entry, 100,000 of them in about 25 MB.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._hashes: TTLCache[bytes, None] = TTLCache(_MAX_OUTDATED_ENTRIES, _OUTDATED_SECONDS)

    def __contains__(self, event: KnownEvent) -> bool:
        with self._mutex:
            return _hash(event) in self._hashes

    def add(self, events: Iterable[KnownEvent]) -> None:
        hashes = [_hash(event) for event in events]
        with self._mutex:
            self._hashes.update(dict.fromkeys(hashes))


def _hash(event: KnownEvent) -> bytes:
    # No event returns to the same state, so its entry never becomes current again.
    state = f"{event.sort_key} {event.status_key} {event.deliveries} {event.lease_state}"
    return blake2b(state.encode(), digest_size=16).digest()


@dataclass(eq=False)
class ClaimableEvents:
    """`settle_ms` is the settle time: the age at which events can be claimed.

    The index lists new events in no certain order. After the settle time, none is missing between them.
    """

    _shards: Shards
    _index: StatusIndex
    _updates: EventUpdates
    _max_deliveries: int
    settle_ms: int
    outdated: OutdatedEntries = field(default_factory=OutdatedEntries, init=False)

    def find(self, tenant_id: str, inbox: str, order: Order, limit: int, now_ms: int) -> Iterator[KnownEvent]:
        """Yields the events in order, whatever their age. `limit` is how many the caller expects to use."""
        partitions = self._shards.get(tenant_id).index_partitions(inbox)
        ranges = [layout.expired_lease_range(now_ms), layout.status_range(Status.UNDELIVERED)]
        first_pages = [(range_, limit // len(partitions) + _SPARE_ENTRIES) for range_ in ranges]
        leases, undelivered = self._index.read(partitions, inbox, first_pages, order, now_ms)
        found = merge_in_order(order, undelivered, chain(*leases))
        return (event for event in found if self._is_claimable(event, now_ms))

    def find_for_claim(
        self, tenant_id: str, inbox: str, limit: int, now_ms: int
    ) -> tuple[Iterator[KnownEvent], list[KnownEvent]]:
        """Returns events older than the settle time, oldest first, and a list of those whose last lease has expired.

        The list is complete once the iterator has ended.
        """
        partitions = self._shards.get(tenant_id).index_partitions(inbox)
        last = layout.last_undelivered_key(now_ms - self.settle_ms if self.settle_ms else None)
        page_limit = limit // len(partitions) + _SPARE_ENTRIES
        leases, undelivered = self._index.read_claimable(partitions, inbox, page_limit, last, now_ms)
        dead: list[KnownEvent] = []
        return self._claimable(merge_in_order(Order.OLDEST, undelivered, leases), dead, now_ms), dead

    def may_exist(self, tenant_id: str, inbox: str, now_ms: int) -> bool:
        """Returns True if a claim would find an event, even if only one that is to be marked dead. Writes nothing."""
        alive, dead = self.find_for_claim(tenant_id, inbox, 0, now_ms)
        return next(alive, None) is not None or bool(dead)

    def mark_dead(self, dead: Sequence[KnownEvent], now_ms: int, deadline: float) -> None:
        """Marks events dead whose last lease has expired. If it fails, a later poll of another process repeats it."""
        first = dead[:_MAX_DEATHS_PER_POLL]
        self.outdated.add(first)
        self._updates.apply([EventUpdate(event, event.dead()) for event in first], now_ms, deadline)

    def update(self, updates: Sequence[EventUpdate], now_ms: int, deadline: float) -> list[UpdateResult]:
        results = self._updates.apply(updates, now_ms, deadline)
        self.outdated.add(update.event for update, result in zip(updates, results, strict=True) if result.error is None)
        return results

    def _claimable(self, events: Iterable[KnownEvent], dead: list[KnownEvent], now_ms: int) -> Iterator[KnownEvent]:
        for event in events:
            if event in self.outdated:
                continue
            if self._is_claimable(event, now_ms):
                yield event
            elif event.status_at(now_ms, self._max_deliveries) is Status.DEAD:
                dead.append(event)

    def _is_claimable(self, event: KnownEvent, now_ms: int) -> bool:
        hold = event.hold
        return hold is None or (hold.until_ms <= now_ms and not event.is_last_lease(self._max_deliveries))
