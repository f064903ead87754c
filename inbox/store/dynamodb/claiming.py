"""Claiming: an event belongs to the poll whose conditional write marked it delivered, and to no other."""

import uuid
from functools import partial

from inbox.errors import StoreUnavailable
from inbox.events import Event, Order, Page, PageSize, Status
from inbox.store.dynamodb.claims import AT_A_TIME, Claims
from inbox.store.dynamodb.connection import Connection, pause
from inbox.store.dynamodb.items import is_expired, to_event
from inbox.store.dynamodb.layout import EVENTS, Item, by_id, place_of
from inbox.store.dynamodb.shards import Shards
from inbox.store.dynamodb.spent import Spent
from inbox.store.dynamodb.status_index import Entry, StatusIndex, fill
from inbox.store.dynamodb.unanswered import Doubt, Unanswered

# For single statements that were throttled. Calls as a whole have been repeated before an error gets here.
_TRIES = 3


class Claiming:
    def __init__(self, connection: Connection, shards: Shards, index: StatusIndex) -> None:
        self._connection = connection
        self._shards = shards
        self._index = index
        self._claims = Claims(connection)
        self._spent = Spent()
        self._unanswered = Unanswered()

    def claim(self, tenant_id: str, size: PageSize, now_ms: int) -> Page:
        partitions = self._shards.of(tenant_id).all()
        # From here on nothing may fail without what was recovered being handed out.
        got = self._recovered(tenant_id, size, now_ms)
        entries = self._index.entries(partitions, Status.UNDELIVERED, Order.OLDEST, size.events, now_ms)
        take = partial(self._take, tenant_id, uuid.uuid4().hex, now_ms)
        return fill((entry for entry in entries if entry not in self._spent), size, AT_A_TIME, take, got)

    def _take(self, tenant_id: str, claim_id: str, now_ms: int, entries: list[Entry], got: list[Event]) -> None:
        claimed: list[Item] = []
        faults: list[str] = []
        entries = self._spent.reserve(entries)
        try:
            for attempt in range(_TRIES):
                if attempt:
                    pause(attempt)
                outcomes = self._claims.attempt(entries, claim_id, now_ms) if entries else []
                claimed += [outcome.item for outcome in outcomes if outcome.item is not None]
                faults = [outcome.fault for outcome in outcomes if outcome.fault is not None]
                entries = [entry for entry, outcome in zip(entries, outcomes, strict=True) if outcome.fault is not None]
                if not faults:
                    return
            raise StoreUnavailable(f"DynamoDB did not answer ({faults[0]}).")
        except Exception:
            self._spent.give_back(entries)
            self._unanswered.remember(tenant_id, [Doubt(entry, frozenset({claim_id}), now_ms) for entry in entries])
            raise
        finally:
            got += [to_event(item) for item in sorted(claimed, key=place_of)]

    def _recovered(self, tenant_id: str, size: PageSize, now_ms: int) -> list[Event]:
        """What earlier claims of this process marked delivered without ever hearing so."""
        doubts = self._unanswered.take(tenant_id, size)
        if not doubts:
            return []
        try:
            found = self._connection.get_many(EVENTS, [doubt.entry.key for doubt in doubts])
        except Exception:
            self._unanswered.remember(tenant_id, doubts)
            raise
        alive = by_id(item for item in found if not is_expired(item, now_ms))
        items = [(doubt, alive.get(doubt.entry.event_id)) for doubt in doubts]
        # The write may still be on its way.
        self._unanswered.remember(
            tenant_id, [doubt for doubt, item in items if doubt.is_open(item) and doubt.is_recent(now_ms)]
        )
        ours = [item for doubt, item in items if item is not None and doubt.is_ours(item)]
        return [to_event(item) for item in sorted(ours, key=place_of)]
