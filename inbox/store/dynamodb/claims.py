"""Polls: which undelivered events a peek or a claim returns.

A claim finds claimable events, and updates each on the condition that it is unchanged, until the page is full. An event
belongs to the claim whose conditional update succeeded, and to no other.
"""

import hashlib
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice

import structlog
from cachetools import TTLCache

from inbox.domain.events import InboxKey, Order, Page, PageSize, Status
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.connection import MAX_BATCH_GET, Connection
from inbox.store.dynamodb.event_states import KnownEvent, effective_state
from inbox.store.dynamodb.event_updates import (
    MAX_STATEMENTS,
    EventUpdate,
    EventUpdates,
    UpdateResult,
    raise_first_error,
)
from inbox.store.dynamodb.items import is_expired, to_event
from inbox.store.dynamodb.layout import EVENTS, Item, number_in, text, text_in
from inbox.store.dynamodb.pending_counts import EventCounter
from inbox.store.dynamodb.poll_queue import PollQueues, PollTurn
from inbox.store.dynamodb.shards import Shards
from inbox.store.dynamodb.status_index import StatusIndex, merge_in_order

# Clients time out after 30 seconds, Zapier's too, and would never get the events that are marked delivered.
MAX_SECONDS = 10

# Entries read beyond the page size. A few stale entries then cost no second query, and the last one shows if there are
# more events.
_SPARE_ENTRIES = 10
# Expired leases are sorted by their end, so the oldest event is only known once all of them are read.
_MAX_EXPIRED_LEASES = 1_000
_MAX_EXPIRED_LEASES_READ = 10_000
# The poll waits until these deaths are written; later polls write the rest.
_MAX_DEATHS_PER_POLL = 200

_MAX_RECENT_CLAIMS = 20_000
_RECENT_CLAIM_SECONDS = 10

_MAX_UNCONFIRMED_CLAIMS = 10_000
_UNCONFIRMED_RETRY_MS = 60_000

_log = structlog.get_logger()


class RecentClaims:
    """Events that this process has just claimed, or found claimed by another, in the state that the index listed.

    The index still lists them for a while, and claiming them again would cost a write unit each.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._events: TTLCache[KnownEvent, bool] = TTLCache(_MAX_RECENT_CLAIMS, _RECENT_CLAIM_SECONDS)

    def __contains__(self, event: KnownEvent) -> bool:
        with self._mutex:
            return event in self._events

    def add(self, events: Iterable[KnownEvent]) -> None:
        with self._mutex:
            self._events.update(dict.fromkeys(events, True))


@dataclass(frozen=True, slots=True)
class UnconfirmedClaim:
    """One event and the IDs of claims whose response was lost (timeout, broken connection).

    The write may still have succeeded. The event is then marked delivered and no index lists it, so the only way to
    deliver it is to remember the claim and look the event up again on the next poll.
    """

    event: KnownEvent
    claim_ids: frozenset[str]
    claimed_at_ms: int

    def succeeded(self, item: Item) -> bool:
        """Returns True if one of our claims took the event."""
        return text_in(item, "claim_id") in self.claim_ids

    def may_succeed_later(self, item: Item | None, now_ms: int) -> bool:
        """Returns True if the event still has the state we saw before claiming, and the write may be on its way."""
        is_untouched = item is not None and item["gsi1sk"] == text(self.event.status_key)
        return is_untouched and now_ms - self.claimed_at_ms < _UNCONFIRMED_RETRY_MS


class UnconfirmedClaims:
    """Thread-safe, bounded list of unconfirmed claims per inbox."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._claims: OrderedDict[tuple[InboxKey, str], UnconfirmedClaim] = OrderedDict()

    def add(self, inbox_key: InboxKey, claims: Iterable[UnconfirmedClaim]) -> None:
        with self._mutex:
            for claim in claims:
                key = inbox_key, claim.event.sort_key
                earlier = self._claims[key].claim_ids if key in self._claims else frozenset()
                self._claims[key] = replace(claim, claim_ids=claim.claim_ids | earlier)
            while len(self._claims) > _MAX_UNCONFIRMED_CLAIMS:
                self._claims.popitem(last=False)

    def pop(self, inbox_key: InboxKey, page_size: PageSize) -> list[UnconfirmedClaim]:
        """Removes and returns claims, up to one page and at least one if there is any."""
        popped: list[UnconfirmedClaim] = []
        with self._mutex:
            for key in [key for key in self._claims if key[0] == inbox_key][: page_size.events]:
                if sum(claim.event.payload_bytes for claim in popped) >= page_size.payload_bytes:
                    break
                popped.append(self._claims.pop(key))
        return popped


@dataclass(frozen=True, slots=True)
class Claim:
    """A poll that claims events: delivered at once, or leased until `lease_until_ms`."""

    inbox_key: InboxKey
    seed: str
    now_ms: int
    lease_until_ms: int | None

    def claim_id(self, deliveries: int) -> str:
        """Returns the ID for a delivery. If a repeated poll leases the event again, the old receipt is invalid."""
        return hashlib.blake2b(f"{self.seed} {deliveries}".encode(), digest_size=16).hexdigest()

    def extended_by(self, waited_ms: int) -> "Claim":
        """Returns the claim with a lease that is longer by the time that the poll waited for its turn."""
        return self if self.lease_until_ms is None else replace(self, lease_until_ms=self.lease_until_ms + waited_ms)

    def update(self, event: KnownEvent) -> EventUpdate:
        claim_id = self.claim_id(event.deliveries + 1)
        if self.lease_until_ms is None:
            return EventUpdate(event, event.consumed(claim_id, self.now_ms))
        return EventUpdate(event, event.leased(claim_id, self.lease_until_ms))

    def claimed_item(self, result: UpdateResult) -> Item | None:
        """Returns the item if this claim took the event."""
        # If a retry after a lost response found our own write, the condition failed, but the claim ID is ours.
        current = result.current
        is_ours = current is not None and current.get("claim_id") == text(
            self.claim_id(number_in(current, "deliveries"))
        )
        return current if is_ours else result.item


@dataclass(eq=False)
class ClaimableEvents:
    """Finds and claims the events of an inbox that are undelivered, or whose lease or delay has ended."""

    _shards: Shards
    _index: StatusIndex
    _updates: EventUpdates
    _max_deliveries: int
    recent: RecentClaims = field(default_factory=RecentClaims, init=False)

    def find(self, tenant_id: str, inbox: str, order: Order, limit: int, now_ms: int) -> Iterator[KnownEvent]:
        """Yields the events in order. `limit` is how many the caller expects to use; it can read on."""
        return self._read(tenant_id, inbox, order, limit, now_ms)[0]

    def find_for_claim(self, tenant_id: str, inbox: str, limit: int, now_ms: int) -> Iterator[KnownEvent]:
        """Like `find`, oldest first and without recent claims. Marks events dead whose last lease has expired."""
        events, dead = self._read(tenant_id, inbox, Order.OLDEST, limit, now_ms, rescan=True)
        # If this fails, a poll of another process marks them, or one of this process once `recent` has forgotten them.
        unwritten = [event for event in dead[:_MAX_DEATHS_PER_POLL] if event not in self.recent]
        self.recent.add(unwritten)
        self._updates.apply([EventUpdate(event, event.dead()) for event in unwritten], now_ms)
        return (event for event in events if event not in self.recent)

    def claim(self, claim: Claim, events: Sequence[KnownEvent]) -> dict[KnownEvent, UpdateResult]:
        results = self._updates.apply([claim.update(event) for event in events], claim.now_ms)
        by_event = dict(zip(events, results, strict=True))
        self.recent.add(event for event, result in by_event.items() if result.error is None)
        return by_event

    def may_exist(self, tenant_id: str, inbox: str, now_ms: int) -> bool:
        """Returns True if a claim would find an event, even if only one that is to be marked dead. Writes nothing."""
        partitions = self._shards.get(tenant_id).index_partitions(inbox)
        ranges = [layout.expired_lease_range(now_ms), layout.status_range(Status.UNDELIVERED)]
        limits = [(range_, _SPARE_ENTRIES) for range_ in ranges]
        found = chain(*self._index.read(partitions, inbox, limits, Order.OLDEST, now_ms))
        return any(event not in self.recent for event in chain(*found))

    def _read(
        self, tenant_id: str, inbox: str, order: Order, limit: int, now_ms: int, *, rescan: bool = False
    ) -> tuple[Iterator[KnownEvent], list[KnownEvent]]:
        """Returns the claimable events in order, and events that are dead but not marked so."""
        partitions = self._shards.get(tenant_id).index_partitions(inbox)
        ranges = [
            (layout.expired_lease_range(now_ms), _MAX_EXPIRED_LEASES),
            (layout.status_range(Status.UNDELIVERED), limit // len(partitions) + _SPARE_ENTRIES),
        ]
        leases, undelivered = self._index.read(partitions, inbox, ranges, order, now_ms, rescan=rescan)
        claimable: list[KnownEvent] = []
        dead: list[KnownEvent] = []
        for of_partition in leases:
            max_claimable = len(claimable) + _MAX_EXPIRED_LEASES
            for event in islice(of_partition, _MAX_EXPIRED_LEASES_READ):
                (dead if event.is_last_lease(self._max_deliveries) else claimable).append(event)
                if len(claimable) == max_claimable:
                    break
        # An index that lags may list a lease and its extension. DynamoDB refuses a batch that names an event twice.
        return merge_in_order(order, undelivered, claimable), list({event.sort_key: event for event in dead}.values())


@dataclass(eq=False)
class Claims:
    _connection: Connection
    _claimable: ClaimableEvents
    _queues: PollQueues
    _counter: EventCounter
    _max_deliveries: int
    _unconfirmed: UnconfirmedClaims = field(default_factory=UnconfirmedClaims, init=False)

    def peek(self, tenant_id: str, inbox: str, order: Order, size: PageSize, now_ms: int) -> Page:
        def add_claimable(known_events: list[KnownEvent], page: list[Item]) -> None:
            items = layout.by_sort_key(self._connection.get_many(EVENTS, [event.key for event in known_events]))
            for event in known_events:
                item = items.get(event.sort_key)
                if item is not None and effective_state(item, now_ms, self._max_deliveries).is_claimable:
                    page.append(item)

        known_events = self._claimable.find(tenant_id, inbox, order, size.events, now_ms)
        items, more = fill_page(known_events, size, MAX_BATCH_GET, add_claimable, [])
        return Page([to_event(item, now_ms, self._max_deliveries) for item in items], more)

    def claim(self, tenant_id: str, inbox: str, size: PageSize, now_ms: int, lease_until_ms: int | None) -> Page:
        claim = Claim((tenant_id, inbox), uuid.uuid4().hex, now_ms, lease_until_ms)
        turn = self._queues.turn(claim.inbox_key)
        known_events = self._claimable.find_for_claim(tenant_id, inbox, size.events, now_ms)
        # From here on no error may discard the recovered events: they are marked delivered.
        recovered = self._recover_unconfirmed(claim, size) if lease_until_ms is None else []
        claim_group = partial(self._claim_group, claim, turn)
        items, more = fill_page(known_events, size, MAX_STATEMENTS, claim_group, recovered)
        # Recovered events, and those that the index listed late, may be older than events already on the page.
        return Page(
            [to_event(item, now_ms, self._max_deliveries) for item in sorted(items, key=layout.order_key_of)], more
        )

    def _claim_group(self, claim: Claim, turn: PollTurn, known_events: list[KnownEvent], page: list[Item]) -> None:
        with turn:
            claim = claim.extended_by(turn.waited_ms)
            unclaimed = [event for event in known_events if event not in self._claimable.recent]
            results = self._claimable.claim(claim, unclaimed)
        for event, result in results.items():
            item = claim.claimed_item(result)
            if item is None:
                continue
            page.append(item)
            if item is not result.item:
                # Its response was lost, so the update was not counted.
                self._counter.count_update(claim.update(event), item, claim.now_ms)
        # A lease whose response was lost simply expires.
        if claim.lease_until_ms is None:
            self._unconfirmed.add(
                claim.inbox_key,
                [
                    UnconfirmedClaim(event, frozenset({claim.claim_id(event.deliveries + 1)}), claim.now_ms)
                    for event, result in results.items()
                    if result.error is not None
                ],
            )
        raise_first_error(results.values())

    def _recover_unconfirmed(self, claim: Claim, size: PageSize) -> list[Item]:
        """Returns events that earlier claims of this process marked delivered without getting a response."""
        unconfirmed = self._unconfirmed.pop(claim.inbox_key, size)
        if not unconfirmed:
            return []
        try:
            found = self._connection.get_many(EVENTS, [each.event.key for each in unconfirmed])
        except Exception:
            self._unconfirmed.add(claim.inbox_key, unconfirmed)
            raise
        items = layout.by_sort_key(item for item in found if not is_expired(item, claim.now_ms))
        recovered = []
        for each in unconfirmed:
            item = items.get(each.event.sort_key)
            if each.may_succeed_later(item, claim.now_ms):
                self._unconfirmed.add(claim.inbox_key, [each])
            if item is not None and each.succeeded(item):
                recovered.append(item)
                update = EventUpdate(each.event, each.event.consumed(claim.seed, each.claimed_at_ms))
                self._counter.count_update(update, item, each.claimed_at_ms)
        return recovered


def fill_page(
    known_events: Iterator[KnownEvent],
    size: PageSize,
    group_size: int,
    add_group: Callable[[list[KnownEvent], list[Item]], None],
    page: list[Item],
) -> tuple[list[Item], bool]:
    """Passes groups of events to `add_group`, which appends to `page`, until it is full or MAX_SECONDS have passed.

    Returns the page, and True if there may be more events. The events may be marked delivered, so an error is only
    raised while the page is empty.
    """
    deadline = time.monotonic() + MAX_SECONDS
    try:
        while group := list(islice(take_page(known_events, size, page), group_size)):
            add_group(group, page)
            if time.monotonic() > deadline:
                return page, True
        return page, next(known_events, None) is not None
    except Exception as error:
        if not page:
            raise
        _log.warning("page cut short", cause=str(error), error=type(error).__name__)
        return page, True


def take_page(known_events: Iterator[KnownEvent], size: PageSize, page: list[Item]) -> Iterator[KnownEvent]:
    """Yields events until `page` with them reaches its size, and at least one if `page` is empty."""
    count, payload_bytes = len(page), sum(number_in(item, "payload_bytes") for item in page)
    while count < size.events and payload_bytes < size.payload_bytes:
        event = next(known_events, None)
        if event is None:
            return
        yield event
        count += 1
        payload_bytes += event.payload_bytes
