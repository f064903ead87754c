"""Polls that the client can repeat.

Such a poll stores the IDs of the events before it claims them. A repeated poll, in any process and after any crash,
claims the same events under the same claim ID.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from inbox.domain.events import ATTEMPT_MS, Page, PageSize
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import layout, writes
from inbox.store.dynamodb.claim_tokens import ClaimTokens
from inbox.store.dynamodb.claimable_events import ClaimableEvents
from inbox.store.dynamodb.claims import Claim, take_page
from inbox.store.dynamodb.connection import ConditionFailed, Connection, new_deadline
from inbox.store.dynamodb.event_states import KnownEvent, effective_state
from inbox.store.dynamodb.event_updates import raise_first_error
from inbox.store.dynamodb.items import is_expired, to_event, to_known_event
from inbox.store.dynamodb.layout import EVENTS, TENANTS, Item, number, number_in, text
from inbox.store.dynamodb.payloads import Payloads
from inbox.store.dynamodb.shards import Shards

_NEW = "attribute_not_exists(PK)"
# TTL deletes days late, and the client may use the ID again.
_EXPIRED = "began_at <= :expired_ms"
_NEW_OR_EXPIRED = f"{_NEW} OR {_EXPIRED}"
_OURS = "seed = :seed"
# A repeated poll returns the events stored earlier, so the client would never get events that are chosen afterwards.
_NOT_REPEATED = "attribute_not_exists(asked_again)"
_OURS_AND_NOT_REPEATED = f"{_OURS} AND {_NOT_REPEATED}"
_STILL_EXISTS = "attribute_exists(PK)"

_UUID_BYTES = 16
# How often a new attempt chooses events if other polls claim all of them first.
_MAX_TRIES = 3


@dataclass(frozen=True, slots=True)
class _Attempt:
    seed: str
    event_ids: list[str]


@dataclass(eq=False)
class Attempts:
    _connection: Connection
    _shards: Shards
    _claimable: ClaimableEvents
    _tokens: ClaimTokens
    _payloads: Payloads
    _max_deliveries: int

    def claim(
        self, tenant_id: str, inbox: str, size: PageSize, now_ms: int, lease_until_ms: int | None, attempt_id: str
    ) -> Page:
        key, inbox_key = layout.attempt_key(tenant_id, inbox, attempt_id), (tenant_id, inbox)
        deadline = new_deadline()
        attempt = self._find_repeated(key, now_ms)
        if attempt is None and not self._claimable.may_exist(tenant_id, inbox, now_ms):
            return Page([], more=False)
        with self._tokens.acquire(inbox_key, now_ms, deadline) as token:
            poll = Claim(inbox_key, "", now_ms, lease_until_ms).extended_by(token.waited_ms)
            new: _Attempt | None = None
            chosen: list[KnownEvent] = []
            for _ in range(_MAX_TRIES):
                known_events, dead = self._claimable.find_for_claim(tenant_id, inbox, size.events, now_ms)
                if attempt is None:
                    chosen = list(take_page(known_events, size, []))
                    self._claimable.mark_dead(dead, now_ms, deadline)
                    if not chosen:
                        break
                    previous, new = new, _Attempt(uuid.uuid4().hex, [event.event_id for event in chosen])
                    attempt = self._begin(key, new, previous, now_ms)
                claim, is_new = replace(poll, seed=attempt.seed), attempt is new
                items = (
                    self._claim(claim, chosen, deadline)
                    if is_new
                    else self._claim_again(claim, attempt.event_ids, deadline)
                )
                if items or not is_new:
                    items = self._payloads.attach(sorted(items, key=layout.order_key_of))
                    events = [to_event(item, now_ms, self._max_deliveries) for item in items]
                    return Page(events, more=any(event.event_id not in attempt.event_ids for event in known_events))
                attempt = None
            if new is not None:
                table, seed = self._connection.table(TENANTS), {":seed": text(new.seed)}
                self._connection.try_write(writes.delete(table, key, _OURS_AND_NOT_REPEATED, seed))
            return Page([], more=bool(chosen))

    def _find_repeated(self, key: dict[str, Any], now_ms: int) -> _Attempt | None:
        """Returns the attempt that an earlier poll stored. A poll that is still running can choose no other events."""
        item = self._connection.get(TENANTS, key)
        if item is None or int(item["began_at"]["N"]) <= now_ms - ATTEMPT_MS:
            return None
        try:
            asked_again = writes.update(
                self._connection.table(TENANTS), key, {"asked_again": {"BOOL": True}}, _STILL_EXISTS
            )
            response = self._connection.write(asked_again, ReturnValues="ALL_NEW")
        except ConditionFailed:
            return None
        return _to_attempt(response["Attributes"])

    def _begin(self, key: dict[str, Any], attempt: _Attempt, previous: _Attempt | None, now_ms: int) -> _Attempt:
        """Stores the attempt, in place of `previous` if other polls claimed all events of that one.

        Returns the stored attempt. It is another poll's if that poll was first.
        """
        if previous is None:
            condition, values = _NEW_OR_EXPIRED, {":expired_ms": number(now_ms - ATTEMPT_MS)}
        else:
            condition, values = _OURS_AND_NOT_REPEATED, {":seed": text(previous.seed)}
        item = {
            **key,
            "seed": text(attempt.seed),
            "event_ids": {"B": b"".join(uuid.UUID(event_id).bytes for event_id in attempt.event_ids)},
            "began_at": number(now_ms),
            "ttl": number((now_ms + ATTEMPT_MS) // 1000 + 1),
        }
        try:
            begin = writes.put(self._connection.table(TENANTS), item, condition, values)
            self._connection.write(begin, ReturnValuesOnConditionCheckFailure="ALL_OLD")
        except ConditionFailed as failed:
            written = failed.item or self._connection.get(TENANTS, key)
            is_own_retry = written is not None and written["seed"] == item["seed"]
            if not is_own_retry:
                other = self._find_repeated(key, now_ms) if previous is None else None
                if other is None:
                    raise StoreUnavailable("Another poll with the same attempt is still running.") from None
                return other
        return attempt

    def _claim_again(self, claim: Claim, event_ids: Sequence[str], deadline: float) -> list[Item]:
        """Returns the events that the claim still holds, and claims those that have become undelivered."""
        tenant_id, inbox = claim.inbox_key
        shards = self._shards.get(tenant_id)
        keys = [key for event_id in event_ids for key in shards.keys(event_id, inbox)]
        held, undelivered = [], []
        for item in self._connection.get_many(EVENTS, keys):
            if is_expired(item, claim.now_ms):
                continue
            state = effective_state(item, claim.now_ms, self._max_deliveries)
            if state.is_held_by(claim.claim_id(number_in(item, "deliveries"))):
                held.append(item)
            elif state.is_claimable:
                undelivered.append(to_known_event(item))
        return held + self._claim(claim, undelivered, deadline)

    def _claim(self, claim: Claim, known_events: Sequence[KnownEvent], deadline: float) -> list[Item]:
        """Returns the claimed items. Raises errors even if some were claimed: the client can repeat the poll."""
        results = self._claimable.update([claim.update(event) for event in known_events], claim.now_ms, deadline)
        raise_first_error(results)
        return [item for result in results if (item := claim.claimed_item(result)) is not None]


def _to_attempt(item: Item) -> _Attempt:
    ids = item["event_ids"]["B"]
    return _Attempt(
        item["seed"]["S"],
        [str(uuid.UUID(bytes=ids[start : start + _UUID_BYTES])) for start in range(0, len(ids), _UUID_BYTES)],
    )
