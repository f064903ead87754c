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

# In the order of `EventState.attributes`.
STATE_ATTRIBUTES = ("status", "gsi1sk", "deliveries", "lost_leases", "claim_id", "delivered_at", "lease_expires_at")
_NULL = {"NULL": True}


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


def new_state(status: Status, order_key: str) -> EventState:
    """Returns the state of a new event. `status` is DELIVERED in a disabled `default`, otherwise UNDELIVERED."""
    return EventState(status, layout.make_status_key(status, order_key), 0, 0)


def is_stored_only(item: Item) -> bool:
    """Returns True if the event was stored while `default` was disabled: delivered without a time of delivery."""
    return item["status"]["S"] == Status.DELIVERED and not number_in(item, "delivered_at")


def imported_state(event: Event, order_key: str, lost_leases: int) -> EventState:
    status_key = layout.make_status_key(event.status, order_key)
    state = EventState(event.status, status_key, event.deliveries, lost_leases, None, event.delivered_at_ms)
    if event.lease is None:
        return state
    until_ms = event.lease.expires_at_ms
    leased_key = layout.make_leased_key(until_ms, order_key)
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
        key = layout.make_status_key(Status.DELIVERED, self.order_key)
        return EventState(Status.DELIVERED, key, self.deliveries + 1, self._lost_leases_afterwards, claim_id, now_ms)

    def leased(self, claim_id: str, until_ms: int) -> EventState:
        key = layout.make_leased_key(until_ms, self.order_key)
        return EventState(
            Status.LEASED, key, self.deliveries + 1, self._lost_leases_afterwards, claim_id, None, until_ms
        )

    def acknowledged(self, claim_id: str, now_ms: int) -> EventState:
        key = layout.make_status_key(Status.DELIVERED, self.order_key)
        return EventState(Status.DELIVERED, key, self.deliveries, self.lost_leases, claim_id, now_ms)

    def extended(self, claim_id: str, until_ms: int) -> EventState:
        key = layout.make_leased_key(until_ms, self.order_key)
        return EventState(Status.LEASED, key, self.deliveries, self.lost_leases, claim_id, None, until_ms)

    def released(self, claim_id: str, release_id: str, available_at_ms: int, now_ms: int) -> EventState:
        if available_at_ms > now_ms:
            key = layout.make_delayed_key(available_at_ms, self.order_key)
        else:
            key = layout.make_status_key(Status.UNDELIVERED, self.order_key)
        release = f"{_RELEASED}:{claim_id}:{release_id}"
        return EventState(Status.UNDELIVERED, key, self.deliveries, self.lost_leases, release)

    def failed(self, released: EventState, max_deliveries: int) -> EventState:
        """Returns the state after a release that counts as a lost lease."""
        if self.is_last_lease(max_deliveries):
            return replace(self.dead(), claim_id=released.claim_id)
        return replace(released, lost_leases=self._lost_leases_afterwards)

    def replayed(self) -> EventState:
        return EventState(
            Status.UNDELIVERED, layout.make_status_key(Status.UNDELIVERED, self.order_key), self.deliveries, 0
        )

    def dead(self) -> EventState:
        key = layout.make_status_key(Status.DEAD, self.order_key)
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
    status, until_ms = Status(item["status"]["S"]), layout.unavailable_until_ms(item["gsi1sk"]["S"])
    claim_id = text_in(item, "claim_id")
    if until_ms is None or now_ms < until_ms:
        return EffectiveState(status, status is Status.UNDELIVERED and until_ms is None, claim_id)
    if status is Status.LEASED and number_in(item, "lost_leases") + 1 >= max_deliveries:
        return EffectiveState(Status.DEAD, False, None)
    return EffectiveState(Status.UNDELIVERED, True, claim_id if status is Status.UNDELIVERED else None)
