"""What a consumer does with what it has leased: acknowledge, release, extend."""

import uuid
from collections.abc import Callable, Sequence

from inbox.domain.events import Receipt, Status, is_event_id
from inbox.domain.inboxes import is_inbox_name
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.event_states import BucketState, Change, Changes, Entry, State, raise_fault, standing
from inbox.store.dynamodb.items import is_expired, to_entry
from inbox.store.dynamodb.layout import EVENTS, Item, by_sort_key, event_key, text
from inbox.store.dynamodb.pending_counts import Counting
from inbox.store.dynamodb.shards import Shards

# How often an event may change between being read and being written, before somebody else is to blame.
_TRIES = 3

Done = Callable[[BucketState, str], bool]
NextState = Callable[[Entry, str], State]


class Leases:
    def __init__(
        self, connection: Connection, shards: Shards, changes: Changes, counting: Counting, max_deliveries: int
    ) -> None:
        self._connection = connection
        self._shards = shards
        self._changes = changes
        self._counting = counting
        self._max_deliveries = max_deliveries

    def acknowledge(self, tenant_id: str, receipts: Sequence[Receipt], now_ms: int) -> list[bool]:
        return self._move(
            tenant_id,
            receipts,
            now_ms,
            lambda its, claim_id: its.status is Status.DELIVERED and its.holds(claim_id),
            lambda entry, claim_id: entry.acknowledged(claim_id, now_ms),
        )

    def release(
        self, tenant_id: str, receipts: Sequence[Receipt], available_at_ms: int, now_ms: int, *, failed: bool = False
    ) -> list[bool]:
        release_id = uuid.uuid4().hex

        def next_state(entry: Entry, claim_id: str) -> State:
            released = entry.released(claim_id, release_id, available_at_ms, now_ms)
            return entry.failed(released, self._max_deliveries) if failed else released

        return self._move(
            tenant_id,
            receipts,
            now_ms,
            lambda its, claim_id: its.was_released_by(claim_id),
            next_state,
        )

    def extend(self, tenant_id: str, receipts: Sequence[Receipt], lease_until_ms: int, now_ms: int) -> list[bool]:
        return self._move(
            tenant_id,
            receipts,
            now_ms,
            lambda _its, _claim_id: False,
            lambda entry, claim_id: entry.extended(claim_id, lease_until_ms),
        )

    def _move(
        self, tenant_id: str, receipts: Sequence[Receipt], now_ms: int, is_done: Done, next_state: NextState
    ) -> list[bool]:
        there = self._read(tenant_id, receipts, now_ms)
        held: dict[Receipt, bool] = dict.fromkeys(receipts, False)
        for _ in range(_TRIES):
            changes: dict[Receipt, Change] = {}
            for receipt, item in there.items():
                its = standing(item, now_ms, self._max_deliveries)
                held[receipt] = is_done(its, receipt.claim_id)
                if its.status is Status.LEASED and its.holds(receipt.claim_id):
                    entry = to_entry(item)
                    changes[receipt] = Change(entry, next_state(entry, receipt.claim_id))
            outcomes = dict(zip(changes, self._changes.make(list(changes.values()), now_ms), strict=True))
            raise_fault(outcomes.values())
            held |= {receipt: outcome.item is not None for receipt, outcome in outcomes.items()}
            for receipt, outcome in outcomes.items():
                self._count_own_release(receipt, changes[receipt], outcome.met, now_ms)
            # Those that have changed since they were read are looked at again: it may have been our own change.
            there = {receipt: outcome.met for receipt, outcome in outcomes.items() if outcome.met is not None}
            if not there:
                return [held[receipt] for receipt in receipts]
        raise StoreUnavailable("An event kept changing.")

    def _count_own_release(self, receipt: Receipt, change: Change, met: Item | None, now_ms: int) -> None:
        """Counts a release of this call whose response was lost, so that only the retry found it."""
        mark = change.state.claim_id
        # Acknowledging and extending leave the claim id as it is, which does not tell whose write it was.
        if met is not None and mark not in (None, receipt.claim_id) and met.get("claim_id") == text(str(mark)):
            self._counting.changed(change.seen, change.state, met, now_ms)

    def _read(self, tenant_id: str, receipts: Sequence[Receipt], now_ms: int) -> dict[Receipt, Item]:
        spread = self._shards.of(tenant_id)
        # A receipt is what a client has sent: none of it is a key before it looks like one.
        receipts = [receipt for receipt in receipts if is_event_id(receipt.event_id) and is_inbox_name(receipt.inbox)]
        keys = [key for receipt in receipts for key in spread.keys(receipt.event_id, receipt.inbox)]
        found = by_sort_key(item for item in self._connection.get_many(EVENTS, keys) if not is_expired(item, now_ms))
        sort_keys = [event_key("", receipt.event_id, receipt.inbox)["sk"]["S"] for receipt in receipts]
        return {
            receipt: found[sort_key] for receipt, sort_key in zip(receipts, sort_keys, strict=True) if sort_key in found
        }
