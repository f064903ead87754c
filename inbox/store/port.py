"""The written contract of a store. Every engine passes `tests/contract`; nothing here is shared code.

`tenant_id` comes first and is never optional: no call sees two tenants. The clock is the caller's: `now_ms` is passed
in. A call that raises StoreUnavailable may have happened, or a part of it; every other failure changed nothing.
"""

from collections.abc import Sequence
from typing import Protocol

from authorizer.resolver import KeyRecord
from inbox.events import Adopted, Event, NewEvent, Order, Page, PageSize, Record, Status, Stored
from inbox.tenants import ApiKey, Tenant


class EventStore(Protocol):
    def put(self, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int) -> list[Stored]:
        """Keeps the events and answers one outcome for each, in their order. When it returns they are on disk.

        Events put one after the other stand in the inbox in that order, and timestamps never fall along it: where
        `now_ms` lies behind the newest event that this process put, the event takes over its timestamp. Processes
        on several machines order their events as far as their clocks agree.

        An event with a fingerprint whose id is there already is not kept again: with the same fingerprint its outcome
        is the first event, `replayed`; with another one the call raises IdempotencyConflict and keeps nothing. Events
        that the engine has no room for raise EventTooLarge, and nothing is kept either.

        From `expires_at_s` on an event is as good as gone, for every call, wherever its deletion lags behind.
        """

    def get(self, tenant_id: str, event_id: str, now_ms: int) -> Event | None:
        """The event, or None where this tenant has none of that id."""

    def page(self, tenant_id: str, status: Status, order: Order, size: PageSize, now_ms: int) -> Page:
        """At most so many events in that status. Changes nothing."""

    def claim(self, tenant_id: str, size: PageSize, now_ms: int) -> Page:
        """Takes at most so many undelivered events, the oldest first, and marks them delivered.

        Eligible is every undelivered event of the tenant. No event is ever in two answers: claims that run at the same
        time, in any process, share the events out between them.
        """


class EventSource(EventStore, Protocol):
    """What events can be moved out of."""

    def count(self, tenant_id: str, now_ms: int) -> int:
        """How many events of the tenant there are, in whatever status."""

    def records(self, tenant_id: str, after: int, most: int, now_ms: int) -> list[Record]:
        """At most so many of them, those behind the number `after`, in order."""


class EventTarget(EventStore, Protocol):
    """What events can be moved into."""

    def adopt(self, tenant_id: str, records: Sequence[Record], now_ms: int) -> Adopted:
        """Keeps the events as they are. Repeating it changes nothing: one that is there already stays as it is.

        Only where the source has delivered an event since, and nobody has touched it here, it becomes delivered here.
        """


class KeyStore(Protocol):
    def add(self, key: ApiKey) -> None:
        """Keeps a new key of an existing tenant; NotFound where there is no such tenant."""

    def find(self, key_hash: str) -> KeyRecord | None:
        """The key with its tenant; None for an unknown or revoked key."""

    def of_tenant(self, tenant_id: str) -> list[ApiKey]:
        """Every key of the tenant, revoked ones too, the oldest first."""

    def revoke(self, key_id: str) -> bool:
        """Whether there is such a key; from now on it is revoked. Repeating it changes nothing."""


class TenantStore(Protocol):
    def create(self, tenant: Tenant) -> None:
        """Keeps a new tenant; AlreadyExists where the id is taken."""

    def get(self, tenant_id: str) -> Tenant | None: ...

    def all(self) -> list[Tenant]:
        """Every tenant, in the order of their ids."""

    def shard(self, tenant_id: str, shards: int, now_ms: int) -> None:
        """Spreads the tenant's new events over so many partitions; those that are there stay, and stay in order.

        NotFound where there is no such tenant, NotAllowed on an engine that has no partitions.
        """


class Store(Protocol):
    @property
    def events(self) -> EventStore: ...

    @property
    def keys(self) -> KeyStore: ...

    @property
    def tenants(self) -> TenantStore: ...

    def init(self) -> None:
        """Makes what the store needs, or brings it up to this release. Safe to repeat."""

    def check(self) -> None:
        """Raises StoreUnavailable unless the store answers and can be written to."""

    def close(self) -> None:
        """Lets go of files and connections. The store is not used afterwards."""


class SourceStore(Store, Protocol):
    """A store that can be moved out of."""

    @property
    def events(self) -> EventSource: ...


class TargetStore(Store, Protocol):
    """A store that can be moved into."""

    @property
    def events(self) -> EventTarget: ...
