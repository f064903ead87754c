"""The written contract of a store. Every engine passes `tests/contract`; nothing here is shared code.

`tenant_id` comes first and is never optional: no call sees two tenants. The time is passed in by the caller, who has it
from `Store.now_ms`. A call that raises StoreUnavailable may have happened, or a part of it; every other failure changed
nothing.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from authorizer.resolver import KeyRecord
from inbox.domain.events import (
    Event,
    ImportResult,
    InboxKey,
    Listing,
    NewEvent,
    Order,
    Page,
    PageSize,
    PutResult,
    Receipt,
    Record,
    ReplayResult,
    Selection,
)
from inbox.domain.inboxes import Inbox
from inbox.domain.keys import ApiKey
from inbox.domain.stats import Counted, Span, Undelivered
from inbox.domain.tenants import AuditEntry, Tenant, TenantPosition, TenantSelection


class EventStore(Protocol):
    """Every event is in the inbox `default`, and a copy in each named one that takes it, with a life of its own.

    While `default` is off, an event is stored there to look back at only: `delivered`, with no deliveries and no
    `delivered_at_ms`. No claim takes it, and it counts as received only. A replay makes it undelivered like any other.

    Clocks decide: a lease that has run out by `now_ms` is lost, and the event undelivered again at its old place, or
    dead if that was the last of `max_deliveries` lost leases. No call shows or does anything else, whenever the
    store comes to writing it down. A released lease is not lost, but a release with `failed` counts as a lost lease.
    """

    def put(self, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int) -> list[PutResult]:
        """Keeps the events and answers one outcome for each, in their order. When it returns they are on disk.

        So are their copies for every inbox of the tenant that takes events of their type.

        Events put one after the other stand in the inbox in that order, and timestamps never fall along it: where
        `now_ms` lies behind the newest event that this process put, the event takes over its timestamp. Processes
        on several machines order their events as far as their clocks agree.

        An event with a fingerprint whose id is there already is not kept again: with the same fingerprint its outcome
        is the first event, `replayed`; with another one the call raises IdempotencyConflict and keeps nothing. Events
        that the engine has no room for raise EventTooLarge, and nothing is kept either.

        From `expires_at_s` on an event is as good as gone, for every call, wherever its deletion lags behind.
        """

    def get(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        """The event, or None where this tenant's inbox has none of that id."""

    def page(
        self, tenant_id: str, selection: Selection, order: Order, size: PageSize, after: str | None, now_ms: int
    ) -> Listing:
        """At most so many of the selected events, in whatever status. Changes nothing.

        `after` is the position of an earlier listing of the same selection and order: the answer goes on behind it,
        whatever has come since. Anything else in its place raises InvalidRequest. Fewer events than asked for, even
        none, do not mean the end where there is a position.
        """

    def peek(self, tenant_id: str, inbox: str, order: Order, size: PageSize, now_ms: int) -> Page:
        """At most so many of the events that a claim could take. Changes nothing."""

    def claim(
        self,
        tenant_id: str,
        inbox: str,
        size: PageSize,
        now_ms: int,
        lease_until_ms: int | None = None,
        attempt: str | None = None,
    ) -> Page:
        """Takes at most so many undelivered events, the oldest first: delivered from now on, or leased until then.

        Eligible is every undelivered event of the inbox, but for those released with a delay that is not over. No event
        is ever in two answers: claims that run at the same time, in any process, share the events out between them.

        Only a claim with the same `attempt` within ATTEMPT_MS gets the same events again, through any process: those
        that are still in its hands as they are, those that have become undelivered since claimed anew. Events in other
        hands are left out, and no further ones come.
        """

    def acknowledge(self, tenant_id: str, receipts: Sequence[Receipt], now_ms: int) -> list[bool]:
        """Marks leased events delivered. For each receipt: whether its event is, by this lease. Safe to repeat."""

    def release(
        self, tenant_id: str, receipts: Sequence[Receipt], available_at_ms: int, now_ms: int, *, failed: bool = False
    ) -> list[bool]:
        """Makes leased events undelivered again, at their old place. No claim takes them before `available_at_ms`.

        With `failed` the release counts as a lost lease. The last of `max_deliveries` makes the event dead at once.

        Returns, for each receipt, True if its event was released under this lease, alive or dead. Safe to repeat: the
        first release counts, with its `available_at_ms` and its `failed`.
        """

    def extend(self, tenant_id: str, receipts: Sequence[Receipt], lease_until_ms: int, now_ms: int) -> list[bool]:
        """Makes leases end at another time. For each receipt: whether its lease was still running."""

    def replay(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        """Makes a delivered or dead event undelivered again, at its old place and with all of its leases still to lose.

        One that is undelivered stays as it is; a leased one raises EventLeased. None where there is no such event.
        """

    def replay_all(self, tenant_id: str, selection: Selection, limit: int, now_ms: int) -> ReplayResult:
        """The same for at most so many of the selected events that are delivered or dead, the oldest first."""

    def erase(self, tenant_id: str, event_id: str, now_ms: int) -> bool:
        """Deletes the event and its copies in every inbox. Whether there was any."""

    def purge(self, now_ms: int, limit: int) -> int:
        """Deletes at most so many rows past their time, of all tenants, where the engine does not do so by itself.

        Answers how many; fewer than `limit` means that none are left.
        """


class InboxStore(Protocol):
    """The named inboxes of a tenant, and whether its inbox `default` is on.

    Only `close` and `clear` see an inbox that is being removed.
    """

    def save(self, tenant_id: str, inbox: Inbox, *, replace: bool = True) -> bool:
        """Keeps a new inbox, or gives the one of that name other event types. Returns True if it is new.

        Every event that is put after it has returned, in any process, gets its copy. Raises TooManyInboxes if the
        tenant has MOST_INBOXES others, InboxClosing if one of that name is still being removed, and InboxExists if it
        exists and `replace` is False: of several such calls at the same time one succeeds.
        """

    def get(self, tenant_id: str, name: str) -> Inbox | None: ...

    def all(self, tenant_id: str) -> list[Inbox]:
        """Every inbox of the tenant, in the order of their names."""

    def close(self, tenant_id: str, name: str) -> bool:
        """Takes the inbox away: from when it returns no event gets a copy. Whether there was one, or its rest."""

    def clear(self, tenant_id: str, name: str, limit: int) -> int:
        """Deletes at most so many copies of a closed inbox. How many; fewer than `limit`: nothing is left of it."""

    def set_default_enabled(self, tenant_id: str, enabled: bool) -> None:
        """Turns the inbox `default` on or off. Changes no event that is stored.

        Every put that begins after it has returned, in any process, obeys.
        """

    def is_default_enabled(self, tenant_id: str) -> bool:
        """Returns True unless the inbox `default` was turned off."""


class CounterStore(Protocol):
    """What became of the events of an inbox, counted as it happened.

    Received at the event's timestamp, everything else when it was done; dead when that was written down. An event that
    is erased or past its time stays counted; an inbox that is removed takes its counts along.
    """

    def read(self, tenant_id: str, inbox: str, span: Span, since_ms: int) -> list[Counted]:
        """Every hour or day that begins then or later and has counts, by event type, in any order.

        Where an engine cannot count in the write itself, what a process counted within a minute may be missing, and is
        for good where that process was killed.
        """

    def undelivered(self, tenant_id: str, inbox: str, now_ms: int) -> Undelivered:
        """How many events a claim could take now. On such an engine the number may be off where it is large."""

    def flush(self, at_once: bool = True) -> None:
        """Writes down what was counted and is kept in memory: all of it, or only what is due."""

    def recount(self, tenant_id: str, since_ms: int, now_ms: int) -> int:
        """Makes the counts of hours and days that begin then or later anew, from the events that are still there.

        They tell when they were received, when they were last delivered, if ever, and which are undelivered: leases,
        deaths and replays stay as they were counted. Answers how many counts are other than before. No other process
        should write meanwhile, or have counts that are yet to be written.
        """


class EventSource(EventStore, Protocol):
    """What events can be moved out of."""

    def count(self, tenant_id: str, now_ms: int) -> int:
        """How many events of the tenant there are, in whatever status."""

    def records(self, tenant_id: str, after: int, limit: int, now_ms: int) -> list[Record]:
        """At most so many of them, those behind the number `after`, in order."""


class EventTarget(EventStore, Protocol):
    """What events can be moved into."""

    def import_events(self, tenant_id: str, records: Sequence[Record], now_ms: int) -> ImportResult:
        """Keeps the events as they are. Repeating it changes nothing: one that is there already stays as it is.

        Only where the source has changed an event since, and nobody has touched it here, it changes here too.
        """


class KeyStore(Protocol):
    def add(self, key: ApiKey) -> None:
        """Keeps a new key of an existing tenant; NotFound where there is no such tenant."""

    def get(self, key_id: str) -> ApiKey | None: ...

    def find(self, key_hash: str) -> KeyRecord | None:
        """The key with its tenant as they are now; None for an unknown or revoked key."""

    def of_tenant(self, tenant_id: str) -> list[ApiKey]:
        """Every key of the tenant, revoked ones too, the oldest first."""

    def revoke(self, key_id: str) -> bool:
        """Whether there is such a key; from now on it is revoked. Repeating it changes nothing."""

    def rotate(self, key_id: str, successor: ApiKey, expires_at_ms: int) -> bool:
        """Keeps the successor, and lets the key expire then unless it does so earlier: both or neither.

        Whether there is such a key; one that is revoked, or had expired when the successor was made, is as good as
        none.
        """

    def expire(self, key_id: str, at_ms: int) -> bool:
        """Lets the key expire then unless it does so earlier. Whether there is such a key that is not revoked."""

    def forget(self, key_id: str) -> None:
        """Deletes all that is known of the key."""

    def record_use(self, key_hash: str, now_ms: int) -> None:
        """Remembers that the key was used, unless a later use is known."""


class TenantStore(Protocol):
    """No tenant is ever removed. Each version of one, from the first on, has its entry in the tenant's audit trail."""

    def create(self, tenant: Tenant, trail: Sequence[AuditEntry]) -> None:
        """Keeps a new tenant together with its trail.

        AlreadyExists where the id is taken, EmailTaken where the e-mail is another tenant's, compared without case.
        """

    def change(self, tenant: Tenant, version: int, trail: Sequence[AuditEntry]) -> bool:
        """Puts the tenant in the place of its earlier version, together with the further trail.

        Whether it was at that version; otherwise nothing changes. EmailTaken as above.
        """

    def get(self, tenant_id: str) -> Tenant | None: ...

    def get_by_email(self, email: str) -> Tenant | None:
        """The tenant of that e-mail, compared without case."""

    def page(self, selection: TenantSelection, limit: int, after: TenantPosition | None) -> list[Tenant]:
        """At most so many of the selected tenants, the newest first, all of them behind that place.

        The latest changes may be missing for a moment.
        """

    def audit(self, tenant_id: str, limit: int, before: int | None) -> list[AuditEntry]:
        """At most so many entries of the tenant's trail, the newest first, with numbers below that one."""

    def all(self) -> list[Tenant]:
        """Every tenant, deleted ones too, in the order of their ids. On an engine whose indexes lag, the last changes
        may be missing.
        """

    def shard(self, tenant_id: str, shards: int, now_ms: int) -> None:
        """Spreads the tenant's new events over so many partitions; those that are there stay, and stay in order.

        NotFound where there is no such tenant, NotAllowed on an engine that has no partitions.
        """


class ArrivalWatch(Protocol):
    """Notices events that have become claimable in inboxes that polls wait for. One thread uses it."""

    pause_seconds: float
    """How long to wait between two looks."""

    def look(self, waiting: frozenset[InboxKey], now_ms: int) -> set[InboxKey]:
        """Returns those of the waiting inboxes that may have an event to claim. A hint: an inbox may have nothing.

        Every event that becomes claimable is reported, whichever process puts, releases or replays it, and also when
        its lease or delay ends. So is one that came just before: an inbox that was not passed to the previous look is
        examined itself.

        SQLite reports an event at the next look, and up to a second later if its lease or delay was shorter than a
        second. DynamoDB reports it within about 2 seconds plus the lag of its index. It takes longer if hundreds of
        inboxes wait in one process.

        Pass the same object while no inbox comes or goes: then a look does not compare thousands of them. A look
        without waiting inboxes is nearly free. After a StoreUnavailable, the next look works again and misses
        nothing.
        """

    def expect(self, tenant_ids: Collection[str]) -> None:
        """Tells the watch that inboxes of these tenants may just have got events, so that it examines them soon."""

    def close(self) -> None:
        """Closes connections and threads of its own. Call it before `Store.close`."""


class Store(Protocol):
    @property
    def events(self) -> EventStore: ...

    @property
    def inboxes(self) -> InboxStore: ...

    @property
    def counters(self) -> CounterStore: ...

    @property
    def keys(self) -> KeyStore: ...

    @property
    def tenants(self) -> TenantStore: ...

    def now_ms(self) -> int:
        """Returns the time that every other method is called with.

        A step of the machine's clock does not change it: it follows slowly, and never falls within a process. Only a
        step of more than an hour is followed at once. The processes of a service have the same time. Different
        machines have the same time as far as their clocks are synchronized.
        """

    def init(self) -> None:
        """Makes what the store needs, or brings it up to this release. Safe to repeat."""

    def check(self) -> None:
        """Raises StoreUnavailable unless the store answers and can be written to."""

    def watch_batches(self, on_batch: Callable[[int], object]) -> None:
        """Has it told, after each write that callers who come together share, for how many of them it was."""

    def watch_arrivals(self) -> ArrivalWatch:
        """Returns a new watch, which makes no call before its first look."""

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
