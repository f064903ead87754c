"""Polls: which undelivered events a peek or a claim returns.

A claim finds claimable events, and updates each on the condition that it is unchanged, until the page is full. An event
belongs to the claim whose conditional update succeeded, and to no other.
"""

import hashlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice

import structlog

from inbox.domain.events import InboxKey, Order, Page, PageSize
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.claim_tokens import ClaimTokens, HeldToken
from inbox.store.dynamodb.claimable_events import ClaimableEvents
from inbox.store.dynamodb.connection import MAX_BATCH_GET, Connection, new_deadline
from inbox.store.dynamodb.event_states import KnownEvent, effective_state
from inbox.store.dynamodb.event_updates import MAX_STATEMENTS, EventUpdate, UpdateResult
from inbox.store.dynamodb.items import is_expired, to_event, to_known_event
from inbox.store.dynamodb.layout import EVENTS, Item, number_in, text
from inbox.store.dynamodb.payloads import Payloads
from inbox.store.dynamodb.pending_counts import EventCounter
from inbox.store.dynamodb.unconfirmed_claims import UnconfirmedClaim, UnconfirmedClaims

_log = structlog.get_logger()


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
class Claims:
    _connection: Connection
    _claimable: ClaimableEvents
    _tokens: ClaimTokens
    _counter: EventCounter
    _payloads: Payloads
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
        items, more = fill_page(known_events, size, MAX_BATCH_GET, add_claimable, [], new_deadline())
        return Page([to_event(item, now_ms, self._max_deliveries) for item in self._payloads.attach(items)], more)

    def claim(self, tenant_id: str, inbox: str, size: PageSize, now_ms: int, lease_until_ms: int | None) -> Page:
        claim = Claim((tenant_id, inbox), uuid.uuid4().hex, now_ms, lease_until_ms)
        deadline = new_deadline()
        known_events, dead = self._claimable.find_for_claim(tenant_id, inbox, size.events, now_ms)
        first = next(known_events, None)
        is_recovering = lease_until_ms is None and self._unconfirmed.exist(claim.inbox_key)
        if first is None and not dead and not is_recovering:
            return Page([], more=False)
        with self._tokens.acquire(claim.inbox_key, now_ms, deadline) as token:
            claim = claim.extended_by(token.waited_ms)
            if token.is_stale:
                known_events, dead = self._claimable.find_for_claim(tenant_id, inbox, size.events, now_ms)
            elif first is not None:
                known_events = chain([first], known_events)
            # From here on no error may discard the recovered events: they are marked delivered.
            claims: dict[str, UnconfirmedClaim] = {}
            recovered = self._recover_unconfirmed(claim, size, claims, deadline) if is_recovering else []
            claim_group = partial(self._claim_group, claim, token, deadline, claims)
            items, more = fill_page(known_events, size, MAX_STATEMENTS, claim_group, recovered, deadline)
            try:
                items = self._payloads.attach(items)
            except Exception:
                self._give_back(claim, items, claims, deadline)
                raise
            if time.monotonic() < deadline:
                self._claimable.mark_dead(dead, now_ms, deadline)
        # Recovered events may be older than events already on the page.
        items.sort(key=layout.order_key_of)
        return Page([to_event(item, now_ms, self._max_deliveries) for item in items], more)

    def _claim_group(
        self,
        claim: Claim,
        token: HeldToken,
        deadline: float,
        claims: dict[str, UnconfirmedClaim],
        known_events: list[KnownEvent],
        page: list[Item],
    ) -> None:
        """Adds the claimed events to the page, up to the first one that could not be claimed. Then raises its error.

        The events behind that one are given back, because its consumer must get it first. Adds to `claims`, by sort
        key, how to recover each event that was claimed.
        """
        if not token.renew() and page:
            raise StoreUnavailable("The poll took so long that another process claims events now.")
        updates = [claim.update(event) for event in known_events]
        results = self._claimable.update(updates, claim.now_ms, deadline)
        error = None
        behind: list[Item] = []
        for update, result in zip(updates, results, strict=True):
            claim_ids = frozenset({claim.claim_id(update.event.deliveries + 1)})
            unconfirmed = UnconfirmedClaim(update.event, claim_ids, claim.now_ms)
            item = claim.claimed_item(result)
            if item is not None:
                claims[update.event.sort_key] = unconfirmed
                (page if error is None else behind).append(item)
                if item is not result.item:
                    # Its response was lost, so the update was not counted.
                    self._counter.count_update(update, item, claim.now_ms)
            elif result.error is not None:
                error = error or result.error
                # A lease simply expires.
                if result.is_in_doubt and claim.lease_until_ms is None:
                    self._unconfirmed.add(claim.inbox_key, [unconfirmed])
        if error is not None:
            self._give_back(claim, behind, claims, deadline)
            raise error

    def _give_back(
        self, claim: Claim, items: Sequence[Item], claims: Mapping[str, UnconfirmedClaim], deadline: float
    ) -> None:
        """Makes claimed events undelivered again. The next poll of this process returns those for which this fails."""
        release_id = uuid.uuid4().hex
        events = [to_known_event(item) for item in items]
        updates = [
            EventUpdate(event, event.released(item["claim_id"]["S"], release_id, claim.now_ms, claim.now_ms))
            for event, item in zip(events, items, strict=True)
        ]
        results = self._claimable.update(updates, claim.now_ms, deadline)
        failed = [event for event, result in zip(events, results, strict=True) if result.error is not None]
        if claim.lease_until_ms is None:
            given_back = [replace(claims[event.sort_key], may_be_given_back=True) for event in failed]
            self._unconfirmed.add(claim.inbox_key, given_back)

    def _recover_unconfirmed(
        self, claim: Claim, size: PageSize, claims: dict[str, UnconfirmedClaim], deadline: float
    ) -> list[Item]:
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
                if each.may_be_given_back:
                    # The update may still be on its way. Once the event is claimed again, its condition fails.
                    (result,) = self._claimable.update([claim.update(to_known_event(item))], claim.now_ms, deadline)
                    if result.item is None:
                        self._unconfirmed.add(claim.inbox_key, [each] if result.error is not None else [])
                        continue
                    item = result.item
                recovered.append(item)
                claims[each.event.sort_key] = each
                update = EventUpdate(each.event, each.event.consumed(claim.seed, each.claimed_at_ms))
                self._counter.count_update(update, item, each.claimed_at_ms)
        return recovered


def fill_page(
    known_events: Iterator[KnownEvent],
    size: PageSize,
    group_size: int,
    add_group: Callable[[list[KnownEvent], list[Item]], None],
    page: list[Item],
    deadline: float,
) -> tuple[list[Item], bool]:
    """Passes groups of events to `add_group`, which appends to `page`, until it is full or the deadline has passed.

    Returns the page, and True if there may be more events. The events may be marked delivered, so an error is only
    raised while the page is empty.
    """
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
