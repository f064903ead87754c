"""The write that changes an event: conditional on what was seen of it, so that nobody's change is written over."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import faults
from inbox.store.dynamodb.connection import Connection, groups_of, pause
from inbox.store.dynamodb.counting import Counting
from inbox.store.dynamodb.event_states import Entry, State
from inbox.store.dynamodb.faults import ConditionFailed
from inbox.store.dynamodb.layout import EVENTS, NOWHERE, Item, by_sort_key, number, text

AT_A_TIME = 25
"""What BatchExecuteStatement takes."""

# For single statements that were throttled. Calls as a whole have been repeated before an error gets here.
_TRIES = 3

_SET = ("status", "gsi1sk", "deliveries", "lost_leases", "claim_id", "delivered_at", "lease_expires_at")

# The item is still what was seen: a replay may bring the same key back, but never with as few deliveries.
_STILL_AS_SEEN = "gsi1sk = :seen AND deliveries = :seen_deliveries"


@dataclass(frozen=True, slots=True)
class Change:
    seen: Entry
    state: State


@dataclass(frozen=True, slots=True)
class Outcome:
    """`item` if the change was made; `fault` if that is unknown; else `met`, the current item, or None if deleted."""

    item: Item | None = None
    met: Item | None = None
    fault: Exception | None = None


_ITEM_NOT_RETURNED = Outcome()
"""The condition failed and DynamoDB returned no item. Replaced once the item has been read."""


def raise_fault(outcomes: Iterable[Outcome]) -> None:
    """The first of them; what the others have done stays done, and repeating the call finds it."""
    for outcome in outcomes:
        if outcome.fault is not None:
            raise outcome.fault


class Changes:
    def __init__(self, connection: Connection, counting: Counting) -> None:
        self._connection = connection
        self._counting = counting
        self._table = connection.table(EVENTS)
        self._statements_hold: bool | None = None
        sets = " ".join(f'SET "{name}" = ?' for name in _SET)
        where = '"pk" = ? AND "sk" = ? AND "gsi1sk" = ?'
        self._statement = f'UPDATE "{self._table}" {sets} WHERE {where} AND "deliveries" = ? RETURNING ALL NEW *'
        self._probe = f'UPDATE "{self._table}" SET claim_id = ? WHERE {where}'
        self._update = "SET " + ", ".join(f"#{name} = :{name}" for name in _SET)

    def make(self, changes: Sequence[Change], now_ms: int) -> list[Outcome]:
        """One outcome for each. Repeating it does no harm and meets what it has done already."""
        answers = [outcome for group in groups_of(AT_A_TIME, changes) for outcome in self._make_group(group)]
        outcomes = self._read_met_items(changes, answers)
        for change, outcome in zip(changes, outcomes, strict=True):
            if outcome.item is not None:
                self._counting.changed(change.seen, change.state, outcome.item, now_ms)
        return outcomes

    def _read_met_items(self, changes: Sequence[Change], outcomes: list[Outcome]) -> list[Outcome]:
        """Reads the items that failed conditions have met and that DynamoDB has not returned.

        The condition may have failed on our own write, if its response was lost and botocore sent it again.
        """
        unread = [change for change, outcome in zip(changes, outcomes, strict=True) if outcome == _ITEM_NOT_RETURNED]
        if not unread:
            return outcomes
        try:
            there = by_sort_key(self._connection.get_many(EVENTS, [change.seen.key for change in unread]))
        except Exception as error:
            return [Outcome(fault=error) if outcome == _ITEM_NOT_RETURNED else outcome for outcome in outcomes]
        return [
            Outcome(met=there.get(change.seen.sort_key)) if outcome == _ITEM_NOT_RETURNED else outcome
            for change, outcome in zip(changes, outcomes, strict=True)
        ]

    def _make_group(self, changes: Sequence[Change]) -> list[Outcome]:
        outcomes = dict.fromkeys(changes, Outcome())
        waiting = list(outcomes)
        for attempt in range(_TRIES):
            if attempt:
                pause(attempt)
            try:
                answers = self._attempt(waiting)
            except Exception as error:
                return [Outcome(fault=error) if change in waiting else outcomes[change] for change in changes]
            outcomes |= dict(zip(waiting, answers, strict=True))
            waiting = [change for change in waiting if outcomes[change].fault is not None]
            if not waiting:
                break
        return [outcomes[change] for change in changes]

    def _attempt(self, changes: Sequence[Change]) -> Sequence[Outcome]:
        if self._may_use_statements():
            return self._together(changes)
        return self._connection.at_once(self._alone, changes)

    def _together(self, changes: Sequence[Change]) -> list[Outcome]:
        statements = []
        for change in changes:
            values, seen = change.state.attributes(), change.seen
            statements.append(
                {
                    "Statement": self._statement,
                    "Parameters": [
                        *(values[name] for name in _SET),
                        *seen.key.values(),
                        text(seen.status_key),
                        number(seen.deliveries),
                    ],
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            )
        answer = self._connection.call("batch_execute_statement", Statements=statements)
        return [_outcome(response) for response in answer["Responses"]]

    def _alone(self, change: Change) -> Outcome:
        values = {f":{name}": value for name, value in change.state.attributes().items()}
        seen = {":seen": text(change.seen.status_key), ":seen_deliveries": number(change.seen.deliveries)}
        try:
            answer = self._connection.call(
                "update_item",
                TableName=self._table,
                Key=change.seen.key,
                UpdateExpression=self._update,
                ConditionExpression=_STILL_AS_SEEN,
                ExpressionAttributeNames={f"#{name}": name for name in _SET},
                ExpressionAttributeValues=values | seen,
                ReturnValues="ALL_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ConditionFailed as failed:
            return Outcome(met=failed.there)
        except (StoreUnavailable, *faults.ERRORS) as error:
            return Outcome(fault=error)
        return Outcome(answer["Attributes"])

    def _may_use_statements(self) -> bool:
        """Whether a false condition stops a statement here. There are engines that carry it out and report success."""
        if self._statements_hold is None:
            parameters = [text("probe"), *NOWHERE.values(), text("never")]
            try:
                answer = self._connection.call(
                    "batch_execute_statement", Statements=[{"Statement": self._probe, "Parameters": parameters}]
                )
            except (StoreUnavailable, *faults.ERRORS):
                # Asked again by the next one.
                return False
            code = answer["Responses"][0].get("Error", {}).get("Code")
            if code not in (None, "ConditionalCheckFailed"):
                return False
            self._statements_hold = code is not None
        return self._statements_hold


def _outcome(response: dict[str, Any]) -> Outcome:
    error = response.get("Error")
    if error is None:
        # Without the item it counts as not answered: asking again brings it.
        return Outcome(response["Item"]) if "Item" in response else Outcome(fault=_unavailable("NoItem"))
    if error["Code"] == "ConditionalCheckFailed":
        return Outcome(met=error.get("Item"))
    return Outcome(fault=_unavailable(error["Code"]))


def _unavailable(code: str) -> StoreUnavailable:
    return StoreUnavailable(f"DynamoDB did not answer ({code}).")
