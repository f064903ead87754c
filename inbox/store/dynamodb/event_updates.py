"""Conditional updates of events from one state to the next, in batches."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from inbox.domain import stats
from inbox.domain.events import Status
from inbox.domain.stats import Counts
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import layout, writes
from inbox.store.dynamodb.connection import AWS_ERRORS, ConditionFailed, Connection, back_off, groups_of, no_result
from inbox.store.dynamodb.event_states import STATE_ATTRIBUTES, EventState, KnownEvent
from inbox.store.dynamodb.layout import ABSENT_EVENT_KEY, EVENTS, Item, number, text

MAX_STATEMENTS = 25
"""The limit of BatchExecuteStatement."""

# For single statements that were throttled. botocore has already repeated calls that failed as a whole.
_MAX_TRIES = 3

_SAME_STATUS = "gsi1sk = :status_key"
# A replay brings the same status key back, but the event has more deliveries by then.
_SAME_DELIVERIES = "deliveries = :known_deliveries"
UNCHANGED = f"{_SAME_STATUS} AND {_SAME_DELIVERIES}"


@dataclass(frozen=True, slots=True)
class EventUpdate:
    event: KnownEvent
    state: EventState

    def counts(self) -> Counts:
        """Returns what the update adds to the statistics."""
        if self.state.status is Status.DELIVERED:
            return stats.DELIVERED
        if self.state.status is Status.LEASED:
            return stats.LEASED if self.state.deliveries > self.event.deliveries else stats.NO_COUNTS
        if self.state.status is Status.DEAD:
            return stats.DEAD
        is_release = self.state.claim_id is not None
        if is_release:
            return stats.NO_COUNTS
        # An event whose last lease has expired may be replayed before its death was written.
        is_unwritten_death = layout.unavailable_until_ms(self.event.status_key) is not None
        return stats.REPLAYED.plus(stats.DEAD) if is_unwritten_death else stats.REPLAYED


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """If `item` is set, the update was made. If `error` is set, it is unknown whether the update was made.

    Otherwise its condition failed: `current` is the item as it is now, or None if it was deleted.
    """

    item: Item | None = None
    current: Item | None = None
    error: Exception | None = None


def raise_first_error(results: Iterable[UpdateResult]) -> None:
    """Raises the first error of the results. Updates that were made stay; a repeated call finds them."""
    for result in results:
        if result.error is not None:
            raise result.error


class EventUpdates:
    """Updates events, each on the condition that it still has the state that was read.

    `on_update` is called with each update that was made, its item and the time.
    """

    def __init__(self, connection: Connection, on_update: Callable[[EventUpdate, Item, int], None]) -> None:
        self._connection = connection
        self._on_update = on_update
        self._table = connection.table(EVENTS)
        self._statements_are_conditional: bool | None = None
        assignments = " ".join(f'SET "{name}" = ?' for name in STATE_ATTRIBUTES)
        where = '"pk" = ? AND "sk" = ? AND "gsi1sk" = ?'
        self._statement = f'UPDATE "{self._table}" {assignments} WHERE {where} AND "deliveries" = ? RETURNING ALL NEW *'
        self._probe = f'UPDATE "{self._table}" SET claim_id = ? WHERE {where}'

    def apply(self, updates: Sequence[EventUpdate], now_ms: int) -> list[UpdateResult]:
        """Returns one result per update. Safe to repeat: updates that were made already come back as `current`."""
        results = [result for group in groups_of(MAX_STATEMENTS, updates) for result in self._apply_group(group)]
        for update, result in zip(updates, results, strict=True):
            if result.item is not None:
                self._on_update(update, result.item, now_ms)
        return results

    def _apply_group(self, updates: Sequence[EventUpdate]) -> list[UpdateResult]:
        results = dict.fromkeys(updates, UpdateResult())
        remaining = list(results)
        for attempt in range(_MAX_TRIES):
            if attempt:
                back_off(attempt)
            try:
                if self._supports_statements():
                    tried = self._update_in_batch(remaining)
                else:
                    tried = self._connection.map_parallel(self._update_one, remaining)
                results |= zip(remaining, tried, strict=True)
            except Exception as error:
                results |= dict.fromkeys(remaining, UpdateResult(error=error))
                break
            remaining = [update for update in remaining if results[update].error is not None]
            if not remaining:
                break
        # DynamoDB does not always return the item that made a condition fail. It may have been our own write, which
        # botocore repeated after a lost response.
        unread = [update for update, result in results.items() if result == UpdateResult()]
        try:
            items = layout.by_sort_key(self._connection.get_many(EVENTS, [update.event.key for update in unread]))
            results |= {update: UpdateResult(current=items.get(update.event.sort_key)) for update in unread}
        except Exception as error:
            results |= dict.fromkeys(unread, UpdateResult(error=error))
        return [results[update] for update in updates]

    def _update_in_batch(self, updates: Sequence[EventUpdate]) -> list[UpdateResult]:
        statements = [
            {
                "Statement": self._statement,
                "Parameters": [
                    *update.state.attributes().values(),
                    *update.event.key.values(),
                    text(update.event.status_key),
                    number(update.event.deliveries),
                ],
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
            for update in updates
        ]
        response = self._connection.call("batch_execute_statement", Statements=statements)
        return [_to_result(part) for part in response["Responses"]]

    def _update_one(self, update: EventUpdate) -> UpdateResult:
        event, attributes = update.event, update.state.attributes()
        unchanged = unchanged_values(event.status_key, event.deliveries)
        write = writes.update(self._table, event.key, attributes, UNCHANGED, unchanged)
        try:
            response = self._connection.write(
                write, ReturnValues="ALL_NEW", ReturnValuesOnConditionCheckFailure="ALL_OLD"
            )
        except ConditionFailed as failed:
            return UpdateResult(current=failed.item)
        except (StoreUnavailable, *AWS_ERRORS) as error:
            return UpdateResult(error=error)
        return UpdateResult(response["Attributes"])

    def _supports_statements(self) -> bool:
        """Returns False if the engine ignores the condition of a statement, as some emulators of DynamoDB do."""
        if self._statements_are_conditional is None:
            parameters = [text("probe"), *ABSENT_EVENT_KEY.values(), text("never")]
            try:
                response = self._connection.call(
                    "batch_execute_statement", Statements=[{"Statement": self._probe, "Parameters": parameters}]
                )
            except (StoreUnavailable, *AWS_ERRORS):
                # The next update probes again.
                return False
            code = response["Responses"][0].get("Error", {}).get("Code")
            if code not in (None, "ConditionalCheckFailed"):
                return False
            self._statements_are_conditional = code is not None
        return self._statements_are_conditional


def unchanged_values(status_key: str, deliveries: int) -> dict[str, Any]:
    return {":status_key": text(status_key), ":known_deliveries": number(deliveries)}


def _to_result(response: dict[str, Any]) -> UpdateResult:
    error = response.get("Error")
    if error is None:
        # A response without the item counts as lost: repeating the statement returns it.
        return UpdateResult(response["Item"]) if "Item" in response else UpdateResult(error=no_result("NoItem"))
    if error["Code"] == "ConditionalCheckFailed":
        return UpdateResult(current=error.get("Item"))
    return UpdateResult(error=no_result(error["Code"]))
