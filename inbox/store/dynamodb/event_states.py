"""What changes in an event's life, and what the clock has made of it since it was written down."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from inbox.domain import stats
from inbox.domain.events import Event, Status
from inbox.domain.stats import Counts
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb.connection import ERRORS, ConditionFailed, Connection, groups_of, pause
from inbox.store.dynamodb.layout import (
    EVENTS,
    NOWHERE,
    Item,
    by_sort_key,
    event_id_of,
    held_key,
    is_held,
    leased_key,
    number,
    status_key,
    text,
    until_of,
)

# The claim id of a released event is `released:CLAIM:RELEASE`: its receipts hold no longer, but repeating the release
# is told from a lost lease, and the call whose write it was recognises it. Earlier releases wrote no `:RELEASE`.
_RELEASED = "released"


@dataclass(frozen=True, slots=True)
class State:
    """The attributes that a change writes, always all of them."""

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
            "claim_id": _NOTHING if self.claim_id is None else text(self.claim_id),
            "delivered_at": _NOTHING if self.delivered_at_ms is None else number(self.delivered_at_ms),
            "lease_expires_at": _NOTHING if self.lease_expires_at_ms is None else number(self.lease_expires_at_ms),
        }


_NOTHING = {"NULL": True}


@dataclass(frozen=True, slots=True)
class Entry:
    """One state of one event, as an index or the table has shown it."""

    partition: str
    sort_key: str
    status_key: str
    place: str
    deliveries: int
    lost_leases: int
    payload_bytes: int
    event_type: str | None

    @property
    def key(self) -> dict[str, Any]:
        return {"pk": text(self.partition), "sk": text(self.sort_key)}

    @property
    def event_id(self) -> str:
        return event_id_of(self.sort_key)

    @property
    def lost_when_back(self) -> int:
        """Returns the number of lost leases once the lease or delay is over. A delay is not a lost lease."""
        return self.lost_leases + (until_of(self.status_key) is not None and not is_held(self.status_key))

    def is_doomed(self, max_deliveries: int) -> bool:
        """The lease is its last: once it has run out, the event is dead."""
        return self.lost_when_back > self.lost_leases and self.lost_when_back >= max_deliveries

    def consumed(self, claim_id: str, now_ms: int) -> State:
        key = status_key(Status.DELIVERED, self.place)
        return State(Status.DELIVERED, key, self.deliveries + 1, self.lost_when_back, claim_id, now_ms)

    def leased(self, claim_id: str, until_ms: int) -> State:
        key = leased_key(until_ms, self.place)
        return State(Status.LEASED, key, self.deliveries + 1, self.lost_when_back, claim_id, None, until_ms)

    def acknowledged(self, claim_id: str, now_ms: int) -> State:
        key = status_key(Status.DELIVERED, self.place)
        return State(Status.DELIVERED, key, self.deliveries, self.lost_leases, claim_id, now_ms)

    def extended(self, claim_id: str, until_ms: int) -> State:
        key = leased_key(until_ms, self.place)
        return State(Status.LEASED, key, self.deliveries, self.lost_leases, claim_id, None, until_ms)

    def released(self, claim_id: str, release_id: str, available_at_ms: int, now_ms: int) -> State:
        waits = available_at_ms > now_ms
        key = held_key(available_at_ms, self.place) if waits else status_key(Status.UNDELIVERED, self.place)
        mark = f"{_RELEASED}:{claim_id}:{release_id}"
        return State(Status.UNDELIVERED, key, self.deliveries, self.lost_leases, mark)

    def failed(self, released: State, max_deliveries: int) -> State:
        """Returns the state after a release that counts as a lost lease."""
        if self.is_doomed(max_deliveries):
            return replace(self.died(), claim_id=released.claim_id)
        return replace(released, lost_leases=self.lost_when_back)

    def replayed(self) -> State:
        return State(Status.UNDELIVERED, status_key(Status.UNDELIVERED, self.place), self.deliveries, 0)

    def died(self) -> State:
        return State(Status.DEAD, status_key(Status.DEAD, self.place), self.deliveries, self.lost_when_back)


def what_happened(seen: Entry, state: State) -> Counts:
    """When an event came from what was seen of it into that state."""
    if state.status is Status.DELIVERED:
        return stats.DELIVERED
    if state.status is Status.LEASED:
        return stats.LEASED if state.deliveries > seen.deliveries else stats.NO_COUNTS
    if state.status is Status.DEAD:
        return stats.DEAD
    if state.claim_id is not None:
        # Released.
        return stats.NO_COUNTS
    # What died of its last lease may be replayed before anybody has written that down.
    return stats.REPLAYED if until_of(seen.status_key) is None else stats.REPLAYED.plus(stats.DEAD)


@dataclass(frozen=True, slots=True)
class BucketState:
    """How an event stands now. `is_available`: a claim may take it."""

    status: Status
    is_available: bool
    claim_id: str | None

    def holds(self, claim_id: str) -> bool:
        """The event is in the hands of that claim, or delivered by it."""
        return self.claim_id == claim_id and self.status in (Status.LEASED, Status.DELIVERED)

    def was_released_by(self, claim_id: str) -> bool:
        released = self.claim_id is not None and self.claim_id.split(":")[:2] == [_RELEASED, claim_id]
        return released and self.status in (Status.UNDELIVERED, Status.DEAD)


def standing(item: Item, now_ms: int, max_deliveries: int) -> BucketState:
    status, until_ms = Status(item["status"]["S"]), until_of(item["gsi1sk"]["S"])
    claim_id = item.get("claim_id", {}).get("S")
    if until_ms is None or now_ms < until_ms:
        return BucketState(status, status is Status.UNDELIVERED and until_ms is None, claim_id)
    if status is Status.LEASED and number_in(item, "lost_leases") + 1 >= max_deliveries:
        return BucketState(Status.DEAD, False, None)
    return BucketState(Status.UNDELIVERED, True, claim_id if status is Status.UNDELIVERED else None)


def number_in(item: Item, name: str) -> int:
    return int(item[name]["N"]) if "N" in item.get(name, {}) else 0


def undelivered(place: str) -> State:
    """Of an event that has just come."""
    return State(Status.UNDELIVERED, status_key(Status.UNDELIVERED, place), 0, 0)


def kept_only(place: str) -> State:
    """Of an event that has come to an inbox that is off: never handed out, unless it is replayed."""
    return State(Status.DELIVERED, status_key(Status.DELIVERED, place), 0, 0)


def is_kept_only(item: Item) -> bool:
    return item["status"]["S"] == Status.DELIVERED and not number_in(item, "delivered_at")


def state_of(event: Event, place: str, lost_leases: int) -> State:
    """Of an event from another store."""
    lease = event.lease
    return State(
        event.status,
        status_key(event.status, place) if lease is None else leased_key(lease.expires_at_ms, place),
        event.deliveries,
        lost_leases,
        None if lease is None else lease.claim_id,
        event.delivered_at_ms,
        None if lease is None else lease.expires_at_ms,
    )


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
    def __init__(self, connection: Connection, on_change: Callable[[Entry, State, Item, int], None]) -> None:
        self._connection = connection
        self._on_change = on_change
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
                self._on_change(change.seen, change.state, outcome.item, now_ms)
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
        except (StoreUnavailable, *ERRORS) as error:
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
            except (StoreUnavailable, *ERRORS):
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
