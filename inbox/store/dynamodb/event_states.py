"""States of an event, and the changes from one to the next.

The table does not show that a lease has expired. `EffectiveState` does, and every method acts on it.
"""

from dataclasses import dataclass, replace
from typing import Any

from inbox.domain.events import Event, Status
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.layout import Item, number, number_in, text, text_in

# The claim ID of a released event is `released:CLAIM:RELEASE`. Its receipts are no longer valid, but a repeated release
# is recognized, and so is the call that wrote it. Earlier releases wrote no `:RELEASE`.
_RELEASED = "released"

_NULL = {"NULL": True}


@dataclass(frozen=True, slots=True)
class Hold:
    """A lease, or the delay after a release: until it ends, no poll can claim the event."""

    is_lease: bool
    until_ms: int


@dataclass(frozen=True, slots=True)
class EventState:
    """What an update writes, always all of it."""

    status: Status
    order_key: str
    deliveries: int
    lost_leases: int
    hold: Hold | None = None
    claim_id: str | None = None
    delivered_at_ms: int | None = None

    @property
    def is_waiting(self) -> bool:
        """Returns True if the event is undelivered and not delayed."""
        return self.status is Status.UNDELIVERED and self.hold is None

    def attributes(self, *, leases_in_place: bool = False) -> dict[str, Any]:
        """Returns the attributes of the item.

        The key of `status-index` has the end of a delay, and in release 0.1.0 that of a lease. With `leases_in_place`
        a lease leaves the key as it is, which saves a write to the index, and `lost_leases`, which the index projects,
        has the end. A delay does not: polls would read past all delayed events, of which there may be many for long.
        """
        is_lease = self.hold is not None and self.hold.is_lease
        until_ms = 0 if self.hold is None else self.hold.until_ms
        lost_leases = number(self.lost_leases)
        if self.hold is None:
            status_key = layout.make_status_key(self.status, self.order_key)
        elif leases_in_place and is_lease:
            status_key = layout.make_status_key(Status.UNDELIVERED, self.order_key)
            lost_leases = text(layout.make_lease_state(self.lost_leases, until_ms))
        else:
            make_key = layout.make_leased_key if is_lease else layout.make_delayed_key
            status_key = make_key(until_ms, self.order_key)
        return {
            "status": text(self.status),
            "gsi1sk": text(status_key),
            "deliveries": number(self.deliveries),
            "lost_leases": lost_leases,
            "claim_id": _NULL if self.claim_id is None else text(self.claim_id),
            "delivered_at": _NULL if self.delivered_at_ms is None else number(self.delivered_at_ms),
            "lease_expires_at": number(until_ms) if is_lease else _NULL,
        }


def new_state(status: Status, order_key: str) -> EventState:
    """Returns the state of a new event. `status` is DELIVERED in a disabled `default`, otherwise UNDELIVERED."""
    return EventState(status, order_key, 0, 0)


def is_stored_only(item: Item) -> bool:
    """Returns True if the event was stored while `default` was disabled: delivered without a time of delivery."""
    return item["status"]["S"] == Status.DELIVERED and not number_in(item, "delivered_at")


def imported_state(event: Event, order_key: str, lost_leases: int, available_at_ms: int | None) -> EventState:
    hold, claim_id = None, None
    if event.lease is not None:
        hold, claim_id = Hold(is_lease=True, until_ms=event.lease.expires_at_ms), event.lease.claim_id
    elif available_at_ms is not None:
        hold = Hold(is_lease=False, until_ms=available_at_ms)
    return EventState(event.status, order_key, event.deliveries, lost_leases, hold, claim_id, event.delivered_at_ms)


def lease_state_of(item: Item) -> str:
    """Returns `lost_leases` as it is stored, or an empty text for an event from before there were leases."""
    return str(next(iter(item["lost_leases"].values()))) if "lost_leases" in item else ""


@dataclass(frozen=True, slots=True)
class KnownEvent:
    """An event in a state that was read from the table or an index. It may have changed since.

    The methods return the states that it can change to.
    """

    partition: str
    sort_key: str
    index_partition: str
    is_listed: bool
    """False if `status-index` does not list the event, because it was delivered."""
    status_key: str
    order_key: str
    deliveries: int
    lease_state: str
    payload_bytes: int
    event_type: str | None

    @property
    def key(self) -> dict[str, Any]:
        return {"pk": text(self.partition), "sk": text(self.sort_key)}

    @property
    def event_id(self) -> str:
        return layout.event_id_of(self.sort_key)

    @property
    def lost_leases(self) -> int:
        return layout.lost_leases_in(self.lease_state)

    @property
    def hold(self) -> Hold | None:
        return _hold(self.status_key, self.lease_state)

    @property
    def is_waiting(self) -> bool:
        """Returns True if the event is undelivered, and neither leased nor delayed."""
        return layout.is_undelivered_key(self.status_key) and self.hold is None

    @property
    def _lost_leases_afterwards(self) -> int:
        """Returns the number of lost leases once the lease or delay has ended. A delay is not a lost lease."""
        hold = self.hold
        return self.lost_leases + (hold is not None and hold.is_lease)

    def is_last_lease(self, max_deliveries: int) -> bool:
        """Returns True if the event is leased and dies when the lease expires."""
        hold = self.hold
        return hold is not None and hold.is_lease and self._lost_leases_afterwards >= max_deliveries

    def status_at(self, now_ms: int, max_deliveries: int) -> Status:
        hold = self.hold
        if hold is None:
            return layout.status_of(self.status_key)
        if now_ms < hold.until_ms:
            return Status.LEASED if hold.is_lease else Status.UNDELIVERED
        return Status.DEAD if self.is_last_lease(max_deliveries) else Status.UNDELIVERED

    def consumed(self, claim_id: str, now_ms: int) -> EventState:
        lost_leases = self._lost_leases_afterwards
        return EventState(Status.DELIVERED, self.order_key, self.deliveries + 1, lost_leases, None, claim_id, now_ms)

    def leased(self, claim_id: str, until_ms: int) -> EventState:
        hold = Hold(is_lease=True, until_ms=until_ms)
        lost_leases = self._lost_leases_afterwards
        return EventState(Status.LEASED, self.order_key, self.deliveries + 1, lost_leases, hold, claim_id)

    def acknowledged(self, claim_id: str, now_ms: int) -> EventState:
        return EventState(Status.DELIVERED, self.order_key, self.deliveries, self.lost_leases, None, claim_id, now_ms)

    def extended(self, claim_id: str, until_ms: int) -> EventState:
        hold = Hold(is_lease=True, until_ms=until_ms)
        return EventState(Status.LEASED, self.order_key, self.deliveries, self.lost_leases, hold, claim_id)

    def released(self, claim_id: str, release_id: str, available_at_ms: int, now_ms: int) -> EventState:
        hold = Hold(is_lease=False, until_ms=available_at_ms) if available_at_ms > now_ms else None
        release = f"{_RELEASED}:{claim_id}:{release_id}"
        return EventState(Status.UNDELIVERED, self.order_key, self.deliveries, self.lost_leases, hold, release)

    def failed(self, released: EventState, max_deliveries: int) -> EventState:
        """Returns the state after a release that counts as a lost lease."""
        if self.is_last_lease(max_deliveries):
            return replace(self.dead(), claim_id=released.claim_id)
        return replace(released, lost_leases=self._lost_leases_afterwards)

    def replayed(self) -> EventState:
        return EventState(Status.UNDELIVERED, self.order_key, self.deliveries, 0)

    def dead(self) -> EventState:
        return EventState(Status.DEAD, self.order_key, self.deliveries, self._lost_leases_afterwards)


def hold_of(item: Item) -> Hold | None:
    return _hold(item["gsi1sk"]["S"], lease_state_of(item))


def _hold(status_key: str, lease_state: str) -> Hold | None:
    until_ms = layout.unavailable_until_ms(status_key)
    if until_ms is not None:
        return Hold(layout.is_leased_key(status_key), until_ms)
    until_ms = layout.lease_end_in(lease_state)
    return None if until_ms is None else Hold(is_lease=True, until_ms=until_ms)


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
    status, hold = Status(item["status"]["S"]), hold_of(item)
    claim_id = text_in(item, "claim_id")
    if hold is None or now_ms < hold.until_ms:
        return EffectiveState(status, status is Status.UNDELIVERED and hold is None, claim_id)
    if status is Status.LEASED and layout.lost_leases_in(lease_state_of(item)) + 1 >= max_deliveries:
        return EffectiveState(Status.DEAD, False, None)
    return EffectiveState(Status.UNDELIVERED, True, claim_id if status is Status.UNDELIVERED else None)
