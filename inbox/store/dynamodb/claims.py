"""Claiming: an event belongs to the poll whose conditional write took it, and to no other."""

import hashlib
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from weakref import WeakValueDictionary

import structlog
from cachetools import TTLCache

from inbox.domain.events import Event, Order, Page, PageSize, Status
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.event_states import (
    AT_A_TIME,
    Change,
    Changes,
    Entry,
    Outcome,
    number_in,
    raise_fault,
)
from inbox.store.dynamodb.items import is_expired, to_event
from inbox.store.dynamodb.layout import EVENTS, Item, back_by, by_sort_key, place_of, status_range, text
from inbox.store.dynamodb.pending_counts import Counting
from inbox.store.dynamodb.shards import Shards
from inbox.store.dynamodb.status_index import StatusIndex, in_order
from inbox.store.dynamodb.unconfirmed_claims import Doubt, Unanswered


class _Line:
    """Who came first is first: a plain lock goes to whoever asks again at once, such as a poll for many events."""

    def __init__(self) -> None:
        self.turns: deque[Turn] = deque()
        self.moved = threading.Condition()


class Turn:
    """One poll's, as often as it needs one and as long as its patience lasts."""

    def __init__(self, line: _Line) -> None:
        self._line = line
        self._until = time.monotonic() + MAX_SECONDS
        self.waited_ms = 0

    def __enter__(self) -> None:
        began = time.monotonic()
        with self._line.moved:
            self._line.turns.append(self)
            if not self._line.moved.wait_for(lambda: self._line.turns[0] is self, max(0.0, self._until - began)):
                self._line.turns.remove(self)
                raise StoreUnavailable("Other polls of the inbox take too long.")
        self.waited_ms += int((time.monotonic() - began) * 1000)

    def __exit__(self, *_: object) -> None:
        with self._line.moved:
            self._line.turns.popleft()
            self._line.moved.notify_all()


class Turns:
    def __init__(self) -> None:
        self._mutex = threading.Lock()
        # Only those of polls that are at work.
        self._lines: WeakValueDictionary[tuple[str, str], _Line] = WeakValueDictionary()

    def of(self, tenant_id: str, inbox: str) -> Turn:
        with self._mutex:
            return Turn(self._lines.setdefault((tenant_id, inbox), _Line()))


_MAX = 20_000
_SECONDS = 10


class Spent:
    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._entries: TTLCache[Entry, bool] = TTLCache(_MAX, _SECONDS)

    def __contains__(self, entry: Entry) -> bool:
        with self._mutex:
            return entry in self._entries

    def without_them(self, entries: Iterable[Entry]) -> list[Entry]:
        with self._mutex:
            return [entry for entry in entries if entry not in self._entries]

    def add(self, entries: Iterable[Entry]) -> None:
        with self._mutex:
            self._entries.update(dict.fromkeys(entries, True))


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


Take = Callable[[list[Entry], list[Event]], None]

# Consumers hang up after 30 seconds, Zapier among them, and would never hear of what is marked delivered.
MAX_SECONDS = 10

_log = structlog.get_logger()


def fill(entries: Iterator[Entry], size: PageSize, at_a_time: int, take: Take, got: list[Event]) -> Page:
    """Goes on until the page is full, the entries end or time is up.

    `take` adds to `got` what it gets of those it is given.
    What was got is never given up for an error that comes later: it may be marked delivered already.
    """
    deadline = time.monotonic() + MAX_SECONDS
    try:
        while group := list(islice(fitting(entries, size, got), at_a_time)):
            take(group, got)
            if time.monotonic() > deadline:
                return Page(got, more=True)
        return Page(got, more=next(entries, None) is not None)
    except Exception as error:
        if not got:
            raise
        _log.warning("page cut short", cause=str(error), error=type(error).__name__)
        return Page(got, more=True)


def fitting(entries: Iterator[Entry], size: PageSize, got: list[Event]) -> Iterator[Entry]:
    """Always a first, and no further one once those before it are enough."""
    count, payload_bytes = len(got), sum(len(event.payload) for event in got)
    while count < size.events and payload_bytes < size.payload_bytes:
        entry = next(entries, None)
        if entry is None:
            return
        yield entry
        count += 1
        payload_bytes += entry.payload_bytes


@dataclass(frozen=True, slots=True)
class Claim:
    """Who takes, and on what terms: consumed at once, or leased until then."""

    tenant_id: str
    inbox: str
    seed: str
    now_ms: int
    lease_until_ms: int | None

    def id_of(self, deliveries: int) -> str:
        """The claim id that an event gets. A repeated poll may lease it anew, which makes the old receipt worthless."""
        return hashlib.blake2b(f"{self.seed} {deliveries}".encode(), digest_size=16).hexdigest()

    def put_off(self, waited_ms: int) -> "Claim":
        """A lease is as long for a poll that had to wait."""
        return self if self.lease_until_ms is None else replace(self, lease_until_ms=self.lease_until_ms + waited_ms)

    def change(self, entry: Entry) -> Change:
        claim_id = self.id_of(entry.deliveries + 1)
        if self.lease_until_ms is None:
            return Change(entry, entry.consumed(claim_id, self.now_ms))
        return Change(entry, entry.leased(claim_id, self.lease_until_ms))

    def took(self, outcome: Outcome) -> Item | None:
        # A retry after a timeout meets our own write: the claim id tells it from somebody else's.
        is_ours = outcome.met is not None and outcome.met.get("claim_id") == text(
            self.id_of(number_in(outcome.met, "deliveries"))
        )
        return outcome.met if is_ours else outcome.item


class Claiming:
    def __init__(
        self,
        connection: Connection,
        availability: Availability,
        changes: Changes,
        spent: Spent,
        turns: Turns,
        counting: Counting,
        max_deliveries: int,
    ) -> None:
        self._connection = connection
        self._counting = counting
        self._availability = availability
        self._changes = changes
        self._max_deliveries = max_deliveries
        self._spent = spent
        self._turns = turns
        self._unanswered = Unanswered()

    def claim(self, tenant_id: str, inbox: str, size: PageSize, now_ms: int, lease_until_ms: int | None) -> Page:
        claim = Claim(tenant_id, inbox, uuid.uuid4().hex, now_ms, lease_until_ms)
        turn = self._turns.of(tenant_id, inbox)
        entries = self._availability.to_claim(tenant_id, inbox, size.events, now_ms)
        # From here on nothing may fail without what was recovered being handed out.
        places: dict[str, str] = {}
        got = self._recovered(claim, size, places) if lease_until_ms is None else []
        page = fill(entries, size, AT_A_TIME, partial(self._take, claim, turn, places), got)
        # What was recovered, or came late, may stand before what was found first.
        return Page(sorted(page.events, key=lambda event: places[event.event_id]), page.more)

    def _take(self, claim: Claim, turn: Turn, places: dict[str, str], entries: list[Entry], got: list[Event]) -> None:
        with turn:
            claim = claim.put_off(turn.waited_ms)
            entries = self._spent.without_them(entries)
            outcomes = self._changes.make([claim.change(entry) for entry in entries], claim.now_ms)
            in_doubt = [entry for entry, outcome in zip(entries, outcomes, strict=True) if outcome.fault is not None]
            self._spent.add(entry for entry in entries if entry not in in_doubt)
        taken = []
        for entry, outcome in zip(entries, outcomes, strict=True):
            item = claim.took(outcome)
            if item is None:
                continue
            taken.append(item)
            if item is not outcome.item:
                # The answer to it was lost, so that nobody has counted it.
                self._counting.changed(entry, claim.change(entry).state, item, claim.now_ms)
        got += self._events(claim, taken, places)
        # A lease that nobody has heard of runs out by itself.
        if claim.lease_until_ms is None:
            doubts = [Doubt(entry, frozenset({claim.id_of(entry.deliveries + 1)}), claim.now_ms) for entry in in_doubt]
            self._unanswered.remember((claim.tenant_id, claim.inbox), doubts)
        raise_fault(outcomes)

    def _recovered(self, claim: Claim, size: PageSize, places: dict[str, str]) -> list[Event]:
        """What earlier claims of this process marked delivered without ever hearing so."""
        whose = claim.tenant_id, claim.inbox
        doubts = self._unanswered.take(whose, size)
        if not doubts:
            return []
        try:
            found = self._connection.get_many(EVENTS, [doubt.entry.key for doubt in doubts])
        except Exception:
            self._unanswered.remember(whose, doubts)
            raise
        alive = by_sort_key(item for item in found if not is_expired(item, claim.now_ms))
        items = [(doubt, alive.get(doubt.entry.sort_key)) for doubt in doubts]
        # The write may still be on its way.
        self._unanswered.remember(
            whose, [doubt for doubt, item in items if doubt.is_open(item) and doubt.is_recent(claim.now_ms)]
        )
        ours = [(doubt, item) for doubt, item in items if item is not None and doubt.is_ours(item)]
        for doubt, item in ours:
            self._counting.changed(doubt.entry, doubt.entry.consumed(claim.seed, doubt.since_ms), item, doubt.since_ms)
        return self._events(claim, [item for _, item in ours], places)

    def _events(self, claim: Claim, items: list[Item], places: dict[str, str]) -> list[Event]:
        """Notes each one's place, which an event does not have."""
        events = [to_event(item, claim.now_ms, self._max_deliveries) for item in items]
        places.update((event.event_id, place_of(item)) for event, item in zip(events, items, strict=True))
        return events
