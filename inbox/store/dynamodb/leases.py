"""Settles leased events: acknowledge, release, extend. `claimable_events.py` finds expired leases."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inbox.domain.events import Receipt, Status, is_event_id
from inbox.domain.inboxes import is_inbox_name
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.event_states import EffectiveState, EventState, KnownEvent, effective_state
from inbox.store.dynamodb.event_updates import EventUpdate, EventUpdates, raise_first_error
from inbox.store.dynamodb.items import is_expired, to_known_event
from inbox.store.dynamodb.layout import EVENTS, Item, text
from inbox.store.dynamodb.pending_counts import EventCounter
from inbox.store.dynamodb.shards import Shards

# Updates tried per event. Another request may change the event between our read and our update.
_MAX_TRIES = 3

IsSettled = Callable[[EffectiveState, str], bool]
NextState = Callable[[KnownEvent, str], EventState]


@dataclass(eq=False)
class Leases:
    _connection: Connection
    _shards: Shards
    _updates: EventUpdates
    _counter: EventCounter
    _max_deliveries: int

    def acknowledge(self, tenant_id: str, receipts: Sequence[Receipt], now_ms: int) -> list[bool]:
        return self._settle(
            tenant_id,
            receipts,
            now_ms,
            lambda state, claim_id: state.status is Status.DELIVERED and state.is_held_by(claim_id),
            lambda event, claim_id: event.acknowledged(claim_id, now_ms),
        )

    def release(
        self, tenant_id: str, receipts: Sequence[Receipt], available_at_ms: int, now_ms: int, *, failed: bool = False
    ) -> list[bool]:
        release_id = uuid.uuid4().hex

        def next_state(event: KnownEvent, claim_id: str) -> EventState:
            released = event.released(claim_id, release_id, available_at_ms, now_ms)
            return event.failed(released, self._max_deliveries) if failed else released

        return self._settle(
            tenant_id, receipts, now_ms, lambda state, claim_id: state.was_released_by(claim_id), next_state
        )

    def extend(self, tenant_id: str, receipts: Sequence[Receipt], lease_until_ms: int, now_ms: int) -> list[bool]:
        return self._settle(
            tenant_id,
            receipts,
            now_ms,
            lambda _state, _claim_id: False,
            lambda event, claim_id: event.extended(claim_id, lease_until_ms),
        )

    def _settle(
        self, tenant_id: str, receipts: Sequence[Receipt], now_ms: int, is_settled: IsSettled, next_state: NextState
    ) -> list[bool]:
        items = self._read(tenant_id, receipts, now_ms)
        settled: dict[Receipt, bool] = dict.fromkeys(receipts, False)
        for _ in range(_MAX_TRIES):
            updates: dict[Receipt, EventUpdate] = {}
            for receipt, item in items.items():
                state = effective_state(item, now_ms, self._max_deliveries)
                settled[receipt] = is_settled(state, receipt.claim_id)
                if state.status is Status.LEASED and state.is_held_by(receipt.claim_id):
                    event = to_known_event(item)
                    updates[receipt] = EventUpdate(event, next_state(event, receipt.claim_id))
            results = dict(zip(updates, self._updates.apply(list(updates.values()), now_ms), strict=True))
            raise_first_error(results.values())
            # Check changed events again: the change may be our own update, whose response was lost.
            items = {}
            for receipt, result in results.items():
                settled[receipt] = result.item is not None
                if result.current is not None:
                    items[receipt] = result.current
                    self._count_own_release(receipt, updates[receipt], result.current, now_ms)
            if not items:
                return [settled[receipt] for receipt in receipts]
        raise StoreUnavailable("Other requests kept changing an event. Repeat the request.")

    def _count_own_release(self, receipt: Receipt, update: EventUpdate, current: Item, now_ms: int) -> None:
        """Counts a release that this call wrote but whose response was lost. A retry found it already written."""
        new_claim_id = update.state.claim_id
        # Acknowledging and extending keep the claim ID, so it does not show which call wrote the item.
        if new_claim_id not in (None, receipt.claim_id) and current.get("claim_id") == text(str(new_claim_id)):
            self._counter.count_update(update, current, now_ms)

    def _read(self, tenant_id: str, receipts: Sequence[Receipt], now_ms: int) -> dict[Receipt, Item]:
        shards = self._shards.get(tenant_id)
        # Receipts come from clients. Only valid event IDs and inbox names may become part of a DynamoDB key.
        receipts = [receipt for receipt in receipts if is_event_id(receipt.event_id) and is_inbox_name(receipt.inbox)]
        keys = [key for receipt in receipts for key in shards.keys(receipt.event_id, receipt.inbox)]
        found = layout.by_sort_key(
            item for item in self._connection.get_many(EVENTS, keys) if not is_expired(item, now_ms)
        )
        sort_keys = {receipt: layout.make_sort_key(receipt.event_id, receipt.inbox) for receipt in receipts}
        return {receipt: found[sort_key] for receipt, sort_key in sort_keys.items() if sort_key in found}
