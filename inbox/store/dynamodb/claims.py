"""The write that claims an event: conditional, with a claim id by which it knows itself again."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from inbox.errors import StoreUnavailable
from inbox.events import Status
from inbox.store.dynamodb import faults
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.faults import ConditionFailed
from inbox.store.dynamodb.layout import EVENTS, NOWHERE, Item, number, status_key, text
from inbox.store.dynamodb.status_index import Entry

AT_A_TIME = 25
"""What BatchExecuteStatement takes."""

_SET = ("status", "gsi1sk", "deliveries", "delivered_at", "claim_id")

# The item is still what the index showed: undelivered, at its place, in nobody's hands.
_STILL_AS_SEEN = "gsi1sk = :seen"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`item` where it is ours now, `fault` where that is not known; neither where somebody else was first."""

    item: Item | None = None
    fault: str | None = None


class Claims:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._table = connection.table(EVENTS)
        self._statements_hold: bool | None = None
        sets = " ".join(f'SET "{name}" = ?' for name in _SET)
        self._statement = (
            f'UPDATE "{self._table}" {sets} WHERE "pk" = ? AND "sk" = ? AND "gsi1sk" = ? RETURNING ALL NEW *'
        )
        self._probe = f'UPDATE "{self._table}" SET claim_id = ? WHERE "pk" = ? AND "sk" = ? AND "gsi1sk" = ?'
        self._update = "SET " + ", ".join(f"#{name} = :{name}" for name in _SET)

    def attempt(self, entries: Sequence[Entry], claim_id: str, now_ms: int) -> Sequence[Outcome]:
        """One outcome for each. Repeating it with the same claim id does no harm and finds what is ours already."""
        if self._may_use_statements():
            return self._together(entries, claim_id, now_ms)
        return self._connection.at_once(partial(self._alone, claim_id=claim_id, now_ms=now_ms), entries)

    def _together(self, entries: Sequence[Entry], claim_id: str, now_ms: int) -> list[Outcome]:
        statements = []
        for entry in entries:
            values = _values(entry, claim_id, now_ms)
            parameters = [*(values[name] for name in _SET), *entry.key.values(), text(entry.status_key)]
            statements.append(
                {
                    "Statement": self._statement,
                    "Parameters": parameters,
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            )
        answer = self._connection.call("batch_execute_statement", Statements=statements)
        return [_outcome(response, claim_id) for response in answer["Responses"]]

    def _alone(self, entry: Entry, claim_id: str, now_ms: int) -> Outcome:
        values = {f":{name}": value for name, value in _values(entry, claim_id, now_ms).items()}
        try:
            answer = self._connection.call(
                "update_item",
                TableName=self._table,
                Key=entry.key,
                UpdateExpression=self._update,
                ConditionExpression=_STILL_AS_SEEN,
                ExpressionAttributeNames={f"#{name}": name for name in _SET},
                ExpressionAttributeValues=values | {":seen": text(entry.status_key)},
                ReturnValues="ALL_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ConditionFailed as failed:
            return _met(failed.there, claim_id)
        except (StoreUnavailable, *faults.ERRORS) as error:
            return Outcome(fault=str(error))
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
                # Asked again by the next claim.
                return False
            code = answer["Responses"][0].get("Error", {}).get("Code")
            if code not in (None, "ConditionalCheckFailed"):
                return False
            self._statements_hold = code is not None
        return self._statements_hold


def _values(entry: Entry, claim_id: str, now_ms: int) -> dict[str, Any]:
    return {
        "status": text(Status.DELIVERED),
        "gsi1sk": text(status_key(Status.DELIVERED, entry.place)),
        "deliveries": number(entry.deliveries + 1),
        "delivered_at": number(now_ms),
        "claim_id": text(claim_id),
    }


def _outcome(response: dict[str, Any], claim_id: str) -> Outcome:
    error = response.get("Error")
    if error is None:
        # Without the item it counts as not answered: asking again brings it.
        return Outcome(response["Item"]) if "Item" in response else Outcome(fault="NoItem")
    if error["Code"] == "ConditionalCheckFailed":
        return _met(error.get("Item"), claim_id)
    return Outcome(fault=error["Code"])


def _met(item: Item | None, claim_id: str) -> Outcome:
    # A retry after a timeout meets our own write: the claim id tells it from somebody else's.
    is_ours = item is not None and item.get("claim_id") == text(claim_id)
    return Outcome(item if is_ours else None)
