"""Polls that can be repeated: what such a poll is about to take is written down before it takes anything.

So whoever repeats it, in whatever process and after whatever crash, goes for the same events under the same claim.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from inbox.domain.events import ATTEMPT_MS, Page, PageSize
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb.claims import Availability, Claim, Spent, Turns, fitting
from inbox.store.dynamodb.connection import ConditionFailed, Connection
from inbox.store.dynamodb.event_states import Changes, Entry, number_in, raise_fault, standing
from inbox.store.dynamodb.items import is_expired, to_entry, to_event
from inbox.store.dynamodb.layout import (
    EVENTS,
    TENANTS,
    Item,
    attempt_key,
    number,
    place_of,
    text,
)
from inbox.store.dynamodb.shards import Shards

# An earlier poll under the same id, long ago, is none.
_NOT_THERE_OR_FORGOTTEN = "attribute_not_exists(PK) OR began_at <= :forgotten"
# Whoever repeats the poll gets what stands there, and would never hear of anything that is chosen afterwards.
_NOBODY_ASKED_AGAIN = "seed = :seed AND attribute_not_exists(asked_again)"
_ID_BYTES = 16
# How often a new attempt chooses events, and others are quicker with all of them.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class _Attempt:
    seed: str
    event_ids: list[str]


class Attempts:
    def __init__(
        self,
        connection: Connection,
        shards: Shards,
        availability: Availability,
        changes: Changes,
        spent: Spent,
        turns: Turns,
        max_deliveries: int,
    ) -> None:
        self._connection = connection
        self._shards = shards
        self._availability = availability
        self._changes = changes
        self._spent = spent
        self._turns = turns
        self._max_deliveries = max_deliveries

    def claim(
        self, tenant_id: str, inbox: str, size: PageSize, now_ms: int, lease_until_ms: int | None, attempt: str
    ) -> Page:
        key = attempt_key(tenant_id, inbox, attempt)
        known = self._known(key, now_ms)
        turn, mine, new = self._turns.of(tenant_id, inbox), None, []
        for _ in range(_ROUNDS):
            entries = self._availability.to_claim(tenant_id, inbox, size.events, now_ms)
            with turn:
                if known is None:
                    new = list(fitting(entries, size, []))
                    if not new:
                        break
                    mine, before = _Attempt(uuid.uuid4().hex, [entry.event_id for entry in new]), mine
                    known = self._begin(key, mine, before, now_ms)
                claim = Claim(tenant_id, inbox, known.seed, now_ms, lease_until_ms).put_off(turn.waited_ms)
                items = self._take(claim, new) if known is mine else self._again(claim, known.event_ids)
            if items or known is not mine:
                return self._page(items, known, entries, now_ms)
            # Others were quicker with all of them.
            known = None
        if mine is not None:
            # What found nothing leaves no trace.
            self._forget(key, mine)
        return Page([], more=bool(new))

    def _page(self, items: list[Item], attempt: _Attempt, entries: Iterator[Entry], now_ms: int) -> Page:
        events = [to_event(item, now_ms, self._max_deliveries) for item in sorted(items, key=place_of)]
        return Page(events, more=any(entry.event_id not in attempt.event_ids for entry in entries))

    def _known(self, key: dict[str, Any], now_ms: int) -> _Attempt | None:
        """What an earlier poll has written down. If that is still at work, it chooses nothing else from now on."""
        there = self._connection.get(TENANTS, key)
        if there is None or int(there["began_at"]["N"]) <= now_ms - ATTEMPT_MS:
            return None
        try:
            answer = self._connection.call(
                "update_item",
                TableName=self._connection.table(TENANTS),
                Key=key,
                UpdateExpression="SET asked_again = :yes",
                ConditionExpression="attribute_exists(PK)",
                ExpressionAttributeValues={":yes": {"BOOL": True}},
                ReturnValues="ALL_NEW",
            )
        except ConditionFailed:
            return None
        return _from_item(answer["Attributes"])

    def _begin(self, key: dict[str, Any], attempt: _Attempt, before: _Attempt | None, now_ms: int) -> _Attempt:
        """Writes the attempt down, in place of one that found nothing, or answers what somebody else has begun."""
        if before is None:
            condition, values = _NOT_THERE_OR_FORGOTTEN, {":forgotten": number(now_ms - ATTEMPT_MS)}
        else:
            condition, values = _NOBODY_ASKED_AGAIN, {":seed": text(before.seed)}
        try:
            self._connection.call(
                "put_item",
                TableName=self._connection.table(TENANTS),
                Item={
                    **key,
                    "seed": text(attempt.seed),
                    "event_ids": {"B": b"".join(uuid.UUID(event_id).bytes for event_id in attempt.event_ids)},
                    "began_at": number(now_ms),
                    "ttl": number((now_ms + ATTEMPT_MS) // 1000 + 1),
                },
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ConditionFailed as failed:
            # A retry after a lost response meets our own attempt.
            there = failed.there or self._connection.get(TENANTS, key)
            if there is not None and there["seed"] == text(attempt.seed):
                return attempt
            theirs = self._known(key, now_ms) if before is None else None
            if theirs is None:
                raise StoreUnavailable("The poll was repeated while it was at work.") from None
            return theirs
        return attempt

    def _forget(self, key: dict[str, Any], attempt: _Attempt) -> None:
        with suppress(ConditionFailed):
            self._connection.call(
                "delete_item",
                TableName=self._connection.table(TENANTS),
                Key=key,
                ConditionExpression=_NOBODY_ASKED_AGAIN,
                ExpressionAttributeValues={":seed": text(attempt.seed)},
            )

    def _again(self, claim: Claim, event_ids: Sequence[str]) -> list[Item]:
        """What is in the claim's hands, and what is to be had once more."""
        spread = self._shards.of(claim.tenant_id)
        keys = [key for event_id in event_ids for key in spread.keys(event_id, claim.inbox)]
        there = [item for item in self._connection.get_many(EVENTS, keys) if not is_expired(item, claim.now_ms)]
        standings = [(item, standing(item, claim.now_ms, self._max_deliveries)) for item in there]
        held = [item for item, its in standings if its.holds(claim.id_of(number_in(item, "deliveries")))]
        return held + self._take(claim, [to_entry(item) for item, its in standings if its.is_available])

    def _take(self, claim: Claim, entries: Sequence[Entry]) -> list[Item]:
        """A fault is raised: repeating the poll helps."""
        outcomes = self._changes.make([claim.change(entry) for entry in entries], claim.now_ms)
        raise_fault(outcomes)
        self._spent.add(entries)
        return [item for outcome in outcomes if (item := claim.took(outcome)) is not None]


def _from_item(item: Item) -> _Attempt:
    ids = item["event_ids"]["B"]
    return _Attempt(
        item["seed"]["S"],
        [str(uuid.UUID(bytes=ids[start : start + _ID_BYTES])) for start in range(0, len(ids), _ID_BYTES)],
    )
