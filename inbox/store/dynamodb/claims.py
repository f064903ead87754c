"""Claiming: an event belongs to the poll whose conditional write took it, and to no other."""

import hashlib
import uuid
from dataclasses import dataclass, replace
from functools import partial

from inbox.domain.events import Event, Page, PageSize
from inbox.store.dynamodb.availability import Availability
from inbox.store.dynamodb.changes import AT_A_TIME, Change, Changes, Outcome, raise_fault
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.counting import Counting
from inbox.store.dynamodb.event_states import Entry, number_in
from inbox.store.dynamodb.filling import fill
from inbox.store.dynamodb.items import is_expired, to_event
from inbox.store.dynamodb.layout import EVENTS, Item, by_sort_key, place_of, text
from inbox.store.dynamodb.spent import Spent
from inbox.store.dynamodb.turns import Turn, Turns
from inbox.store.dynamodb.unconfirmed_claims import Doubt, Unanswered


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
