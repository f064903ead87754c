"""States of an event, and the conditional update from one to the next.

The table does not show that a lease has expired. `EffectiveState` does, and every method acts on it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from inbox.domain import stats
from inbox.domain.events import Event, Status
from inbox.domain.stats import Counts
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import layout, writes
from inbox.store.dynamodb.connection import AWS_ERRORS, ConditionFailed, Connection, back_off, groups_of, no_response
from inbox.store.dynamodb.layout import ABSENT_EVENT_KEY, EVENTS, Item, number, number_in, text, text_in

MAX_STATEMENTS = 25
"""The limit of BatchExecuteStatement."""

# For single statements that were throttled. botocore has already repeated calls that failed as a whole.
_MAX_TRIES = 3

# The claim ID of a released event is `released:CLAIM:RELEASE`. Its receipts are no longer valid, but a repeated release
# is recognized, and so is the call that wrote it. Earlier releases wrote no `:RELEASE`.
_RELEASED = "released"

# In the order of `EventState.attributes`.
_STATE_ATTRIBUTES = ("status", "gsi1sk", "deliveries", "lost_leases", "claim_id", "delivered_at", "lease_expires_at")
_NULL = {"NULL": True}

_SAME_STATUS = "gsi1sk = :status_key"
# A replay brings the same status key back, but the event has more deliveries by then.
_SAME_DELIVERIES = "deliveries = :known_deliveries"
UNCHANGED = f"{_SAME_STATUS} AND {_SAME_DELIVERIES}"


@dataclass(frozen=True, slots=True)
class EventState:
    """The attributes that an update writes, always all of them."""

    status: Status
    status_key: str
    deliveries: int
    lost_leases: int
    claim_id: str | None = None
    delivered_at_ms: int | None = None
    lease_expires_at_ms: int | None = None

    def attributes(self) -> dict[str, Any]:
        return {
            "status": text(self.status),
            "gsi1sk": text(self.status_key),
            "deliveries": number(self.deliveries),
            "lost_leases": number(self.lost_leases),
            "claim_id": _NULL if self.claim_id is None else text(self.claim_id),
            "delivered_at": _NULL if self.delivered_at_ms is None else number(self.delivered_at_ms),
            "lease_expires_at": _NULL if self.lease_expires_at_ms is None else number(self.lease_expires_at_ms),
        }


def undelivered_state(order_key: str) -> EventState:
    return EventState(Status.UNDELIVERED, layout.status_key(Status.UNDELIVERED, order_key), 0, 0)


def stored_only_state(order_key: str) -> EventState:
    """The state of a new event while `default` is disabled: delivered, but never at any time."""
    return EventState(Status.DELIVERED, layout.status_key(Status.DELIVERED, order_key), 0, 0)


def is_stored_only(item: Item) -> bool:
    return item["status"]["S"] == Status.DELIVERED and not number_in(item, "delivered_at")


def imported_state(event: Event, order_key: str, lost_leases: int) -> EventState:
    status_key = layout.status_key(event.status, order_key)
    state = EventState(event.status, status_key, event.deliveries, lost_leases, None, event.delivered_at_ms)
    if event.lease is None:
        return state
    until_ms = event.lease.expires_at_ms
    leased_key = layout.leased_key(until_ms, order_key)
    return replace(state, status_key=leased_key, claim_id=event.lease.claim_id, lease_expires_at_ms=until_ms)


@dataclass(frozen=True, slots=True)
class KnownEvent:
    """An event in a state that was read from the table or an index. It may have changed since.

    The methods return the states that it can change to.
    """

    partition: str
    sort_key: str
    status_key: str
    order_key: str
    deliveries: int
    lost_leases: int
    payload_bytes: int
    event_type: str | None

    @property
    def key(self) -> dict[str, Any]:
        return {"pk": text(self.partition), "sk": text(self.sort_key)}

    @property
    def event_id(self) -> str:
        return layout.event_id_of(self.sort_key)

    @property
    def _lost_leases_afterwards(self) -> int:
        """Returns the number of lost leases once the lease or delay is over. A delay is not a lost lease."""
        return self.lost_leases + layout.is_leased_key(self.status_key)

    def is_last_lease(self, max_deliveries: int) -> bool:
        """Returns True if the event is leased and dies when the lease expires."""
        return layout.is_leased_key(self.status_key) and self._lost_leases_afterwards >= max_deliveries

    def consumed(self, claim_id: str, now_ms: int) -> EventState:
        key = layout.status_key(Status.DELIVERED, self.order_key)
        return EventState(Status.DELIVERED, key, self.deliveries + 1, self._lost_leases_afterwards, claim_id, now_ms)

    def leased(self, claim_id: str, until_ms: int) -> EventState:
        key = layout.leased_key(until_ms, self.order_key)
        return EventState(
            Status.LEASED, key, self.deliveries + 1, self._lost_leases_afterwards, claim_id, None, until_ms
        )

    def acknowledged(self, claim_id: str, now_ms: int) -> EventState:
        key = layout.status_key(Status.DELIVERED, self.order_key)
        return EventState(Status.DELIVERED, key, self.deliveries, self.lost_leases, claim_id, now_ms)

    def extended(self, claim_id: str, until_ms: int) -> EventState:
        key = layout.leased_key(until_ms, self.order_key)
        return EventState(Status.LEASED, key, self.deliveries, self.lost_leases, claim_id, None, until_ms)

    def released(self, claim_id: str, release_id: str, available_at_ms: int, now_ms: int) -> EventState:
        if available_at_ms > now_ms:
            key = layout.delayed_key(available_at_ms, self.order_key)
        else:
            key = layout.status_key(Status.UNDELIVERED, self.order_key)
        release = f"{_RELEASED}:{claim_id}:{release_id}"
        return EventState(Status.UNDELIVERED, key, self.deliveries, self.lost_leases, release)

    def failed(self, released: EventState, max_deliveries: int) -> EventState:
        """Returns the state after a release that counts as a lost lease."""
        if self.is_last_lease(max_deliveries):
            return replace(self.dead(), claim_id=released.claim_id)
        return replace(released, lost_leases=self._lost_leases_afterwards)

    def replayed(self) -> EventState:
        return EventState(Status.UNDELIVERED, layout.status_key(Status.UNDELIVERED, self.order_key), self.deliveries, 0)

    def dead(self) -> EventState:
        key = layout.status_key(Status.DEAD, self.order_key)
        return EventState(Status.DEAD, key, self.deliveries, self._lost_leases_afterwards)


@dataclass(frozen=True, slots=True)
class EffectiveState:
    """The state of an event at a given time, whether or not it has been written."""

    status: Status
    is_claimable: bool
    claim_id: str | None

    def is_held_by(self, claim_id: str) -> bool:
        """Returns True if this claim leased or delivered the event, and no other has since."""
        return self.claim_id == claim_id and self.status in (Status.LEASED, Status.DELIVERED)

    def was_released_by(self, claim_id: str) -> bool:
        released = self.claim_id is not None and self.claim_id.split(":")[:2] == [_RELEASED, claim_id]
        return released and self.status in (Status.UNDELIVERED, Status.DEAD)


def effective_state(item: Item, now_ms: int, max_deliveries: int) -> EffectiveState:
    status, until_ms = Status(item["status"]["S"]), layout.unavailable_until(item["gsi1sk"]["S"])
    claim_id = text_in(item, "claim_id")
    if until_ms is None or now_ms < until_ms:
        return EffectiveState(status, status is Status.UNDELIVERED and until_ms is None, claim_id)
    if status is Status.LEASED and number_in(item, "lost_leases") + 1 >= max_deliveries:
        return EffectiveState(Status.DEAD, False, None)
    return EffectiveState(Status.UNDELIVERED, True, claim_id if status is Status.UNDELIVERED else None)


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
        is_unwritten_death = layout.unavailable_until(self.event.status_key) is not None
        return stats.REPLAYED.plus(stats.DEAD) if is_unwritten_death else stats.REPLAYED


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """The update was made if `item` is set. Whether it was made is unknown if `error` is set.

    Otherwise its condition failed: `current` is the item as it is now, or None if it was deleted.
    """

    item: Item | None = None
    current: Item | None = None
    error: Exception | None = None


def raise_first_error(results: Iterable[UpdateResult]) -> None:
    """The other updates remain; repeating the call finds them."""
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
        assignments = " ".join(f'SET "{name}" = ?' for name in _STATE_ATTRIBUTES)
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


def unchanged_values(its_status_key: str, deliveries: int) -> dict[str, Any]:
    return {":status_key": text(its_status_key), ":known_deliveries": number(deliveries)}


def _to_result(response: dict[str, Any]) -> UpdateResult:
    error = response.get("Error")
    if error is None:
        # A response without the item counts as lost: repeating the statement returns it.
        return UpdateResult(response["Item"]) if "Item" in response else UpdateResult(error=no_response("NoItem"))
    if error["Code"] == "ConditionalCheckFailed":
        return UpdateResult(current=error.get("Item"))
    return UpdateResult(error=no_response(error["Code"]))
