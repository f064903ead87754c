"""Conditional updates of events from one state to the next, in batches."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from inbox.domain import stats
from inbox.domain.events import DEFAULT_INBOX, Status
from inbox.domain.stats import Counts
from inbox.errors import StoreThrottled, StoreUnavailable
from inbox.store.dynamodb import layout, writes
from inbox.store.dynamodb.connection import (
    AWS_ERRORS,
    ConditionFailed,
    Connection,
    back_off,
    may_have_succeeded,
    new_deadline,
    no_result,
    translate_error,
)
from inbox.store.dynamodb.event_states import EventState, KnownEvent
from inbox.store.dynamodb.items import UNLISTED_PARTITION
from inbox.store.dynamodb.layout import ABSENT_EVENT_KEY, EVENTS, Item, number, text
from inbox.store.dynamodb.schema import SCHEMA_VERSION, SchemaVersion

MAX_STATEMENTS = 25
"""The limit of BatchExecuteStatement."""

# Tries that fail for another reason than throttling.
_MAX_FAILED_TRIES = 3
_UNKNOWN_OUTCOME = frozenset({"InternalServerError"})

_SAME_STATUS = "gsi1sk = :status_key"
# A replay brings the same status key back, but the event has more deliveries by then.
_SAME_DELIVERIES = "deliveries = :known_deliveries"
# A lease, an extension and a release need not change the status key.
_SAME_LEASE = "lost_leases = :known_lease"
_NEVER_LEASED = "attribute_not_exists(lost_leases)"


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
        is_unwritten_death = self.event.hold is not None
        return stats.REPLAYED.plus(stats.DEAD) if is_unwritten_death else stats.REPLAYED


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """If `item` is set, the update was made. If `error` is set, it was not made, or it is unknown: `is_in_doubt`.

    Otherwise its condition failed: `current` is the item as it is now, or None if it was deleted. With `is_in_doubt`
    the response to an earlier try was lost, and that try may have made the update.
    """

    item: Item | None = None
    current: Item | None = None
    error: Exception | None = None
    is_in_doubt: bool = False


def raise_first_error(results: Iterable[UpdateResult]) -> None:
    """Raises the first error of the results. Updates that were made stay; a repeated call finds them."""
    for result in results:
        if result.error is not None:
            raise result.error


class EventUpdates:
    """Updates events, each on the condition that it still has the state that was read.

    Without `list_delivered`, `status-index` does not list the delivered events of `default`, which saves a write to the
    index.
    `on_update` is called with each update that was made, its item and the time.
    """

    def __init__(
        self,
        connection: Connection,
        schema: SchemaVersion,
        on_update: Callable[[EventUpdate, Item, int], None],
        *,
        list_delivered: bool,
    ) -> None:
        self._connection = connection
        self._schema = schema
        self._list_delivered = list_delivered
        self._on_update = on_update
        self._table = connection.table(EVENTS)
        self._statements_are_conditional: bool | None = None
        self._probe = f'UPDATE "{self._table}" SET claim_id = ? WHERE "pk" = ? AND "sk" = ? AND "gsi1sk" = ?'

    def apply(self, updates: Sequence[EventUpdate], now_ms: int, deadline: float | None = None) -> list[UpdateResult]:
        """Returns one result per update. Safe to repeat: updates that were made already come back as `current`.

        Repeats throttled updates until the deadline, by default `new_deadline()`.
        """
        deadline = new_deadline() if deadline is None else deadline
        results = [result for group in _groups(updates) for result in self._apply_group(group, deadline)]
        for update, result in zip(updates, results, strict=True):
            if result.item is not None:
                self._on_update(update, result.item, now_ms)
        return results

    def _apply_group(self, updates: Sequence[EventUpdate], deadline: float) -> list[UpdateResult]:
        results = dict.fromkeys(updates, UpdateResult())
        remaining = list(results)
        failed_tries = 0
        for attempt in count():
            tried = self._update(remaining)
            for update, result in zip(remaining, tried, strict=True):
                # That a later try was throttled does not mean that an earlier one failed.
                in_doubt = result.item is None and (result.is_in_doubt or results[update].is_in_doubt)
                results[update] = replace(result, is_in_doubt=in_doubt)
            failed_tries += any(not isinstance(result.error, StoreThrottled | None) for result in tried)
            remaining = [update for update in remaining if results[update].error is not None]
            if not remaining or failed_tries == _MAX_FAILED_TRIES or not back_off(attempt, deadline):
                break
        self._read_current(results)
        return [results[update] for update in updates]

    def _read_current(self, results: dict[EventUpdate, UpdateResult]) -> None:
        """Reads the items that made conditions fail. DynamoDB does not always return them.

        The condition may have failed on our own write, repeated after a lost response.
        """
        unread = [update for update, result in results.items() if replace(result, is_in_doubt=False) == UpdateResult()]
        try:
            items = layout.by_sort_key(self._connection.get_many(EVENTS, [update.event.key for update in unread]))
            results |= {update: replace(results[update], current=items.get(update.event.sort_key)) for update in unread}
        except Exception as error:
            results |= {update: UpdateResult(error=error, is_in_doubt=True) for update in unread}

    def _update(self, updates: Sequence[EventUpdate]) -> list[UpdateResult]:
        """Tries each update once."""
        try:
            if self._supports_statements():
                return self._update_in_batch(updates)
            return self._connection.map_parallel(self._update_one, updates)
        except Exception as error:
            return [_to_failure(error)] * len(updates)

    def _update_in_batch(self, updates: Sequence[EventUpdate]) -> list[UpdateResult]:
        statements = [self._to_statement(update) for update in updates]
        response = self._connection.call_once("batch_execute_statement", Statements=statements)
        return [_to_result(part) for part in response["Responses"]]

    def _to_statement(self, update: EventUpdate) -> dict[str, Any]:
        event, attributes = update.event, self._attributes(update)
        changes = " ".join(
            f'REMOVE "{name}"' if value is None else f'SET "{name}" = ?' for name, value in attributes.items()
        )
        values = [value for value in attributes.values() if value is not None]
        known = [*event.key.values(), text(event.status_key), number(event.deliveries)]
        same_lease = '"lost_leases" IS MISSING'
        if event.lease_state:
            same_lease = '"lost_leases" = ?'
            known.append(layout.lease_state_attribute(event.lease_state))
        where = f'"pk" = ? AND "sk" = ? AND "gsi1sk" = ? AND "deliveries" = ? AND {same_lease}'
        return {
            "Statement": f'UPDATE "{self._table}" {changes} WHERE {where} RETURNING ALL NEW *',
            "Parameters": values + known,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def _attributes(self, update: EventUpdate) -> dict[str, Any]:
        """Returns what the update writes. None removes an attribute."""
        event, is_current = update.event, self._schema.get() >= SCHEMA_VERSION
        attributes = update.state.attributes(leases_in_place=is_current)
        # A named inbox is deleted by what the index lists.
        is_unlisted = not self._list_delivered and layout.inbox_of_sort_key(event.sort_key) == DEFAULT_INBOX
        if update.state.status is Status.DELIVERED and is_current and is_unlisted:
            return attributes | {"gsi1pk": None, UNLISTED_PARTITION: text(event.index_partition)}
        if event.is_listed:
            return attributes
        return attributes | {"gsi1pk": text(event.index_partition), UNLISTED_PARTITION: None}

    def _update_one(self, update: EventUpdate) -> UpdateResult:
        event = update.event
        write = writes.update(self._table, event.key, self._attributes(update), *unchanged(event))
        returned = {"ReturnValues": "ALL_NEW", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        try:
            response = self._connection.call_once("update_item", **write["Update"], **returned)
        except AWS_ERRORS as error:
            failure = translate_error(error)
            return UpdateResult(current=failure.item) if isinstance(failure, ConditionFailed) else _to_failure(error)
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


def _groups(updates: Iterable[EventUpdate]) -> Iterator[list[EventUpdate]]:
    """Yields groups that fit into a batch. DynamoDB refuses a batch that names an event twice."""
    group: dict[str, EventUpdate] = {}
    for update in updates:
        if len(group) == MAX_STATEMENTS or update.event.sort_key in group:
            yield list(group.values())
            group = {}
        group[update.event.sort_key] = update
    if group:
        yield list(group.values())


def unchanged(event: KnownEvent) -> tuple[str, dict[str, Any]]:
    """Returns the condition that the event has the known state, and the values in it."""
    values = {":status_key": text(event.status_key), ":known_deliveries": number(event.deliveries)}
    same_lease = _NEVER_LEASED
    if event.lease_state:
        same_lease = _SAME_LEASE
        values[":known_lease"] = layout.lease_state_attribute(event.lease_state)
    return f"{_SAME_STATUS} AND {_SAME_DELIVERIES} AND {same_lease}", values


def _to_failure(error: Exception) -> UpdateResult:
    if isinstance(error, AWS_ERRORS):
        return UpdateResult(error=translate_error(error), is_in_doubt=may_have_succeeded(error))
    return UpdateResult(error=error, is_in_doubt=True)


def _to_result(response: dict[str, Any]) -> UpdateResult:
    code = response.get("Error", {}).get("Code")
    if code == "ConditionalCheckFailed":
        return UpdateResult(current=response["Error"].get("Item"))
    if code is not None:
        return UpdateResult(error=no_result(code), is_in_doubt=code in _UNKNOWN_OUTCOME)
    if "Item" not in response:
        # Counts as lost: repeating the statement returns the item.
        return UpdateResult(error=no_result("NoItem"), is_in_doubt=True)
    return UpdateResult(response["Item"])
