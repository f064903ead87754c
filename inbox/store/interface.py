"""The contract of a store. Every engine passes `tests/contract`; engines share no code.

A method for one tenant takes `tenant_id` first, and it is never optional: such a call never touches two tenants. The
caller passes the time, which it reads from `Store.now_ms`. A call that raises StoreUnavailable may have succeeded, in
full or in part. Any other exception means that nothing changed.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from authorizer.resolver import KeyRecord
from inbox.domain.events import (
    Event,
    EventExport,
    ExportedEvent,
    ImportResult,
    InboxKey,
    Listing,
    NewEvent,
    Order,
    Page,
    PageSize,
    PutResult,
    Receipt,
    ReplayResult,
    Selection,
)
from inbox.domain.inboxes import Inbox
from inbox.domain.keys import ApiKey
from inbox.domain.stats import Span, SpanCounts, UndeliveredSummary
from inbox.domain.tenants import AuditEntry, Tenant, TenantPosition, TenantSelection


class EventStore(Protocol):
    """Every event is stored in the inbox `default` and copied to each named inbox that receives its type.

    Each copy has its own status. While `default` is disabled, new events are stored there as `delivered`, with no
    deliveries and no `delivered_at_ms`: no claim returns them, and they only count as received. A replay makes them
    undelivered like any other.

    A lease that has expired by `now_ms` is lost: the event is undelivered again, at its old position, or dead if it
    has lost `max_deliveries` leases. Every method acts on that status, even before the store has written it. A release
    is not a lost lease unless it has `failed`.
    """

    def put(self, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int) -> list[PutResult]:
        """Stores the events and their copies durably. Returns one result per event, in the order of `events`.

        Events are ordered in the inbox as they were put, and their timestamps never decrease: if `now_ms` is earlier
        than the newest event that this process put, the event has that event's timestamp. Processes on several
        machines order their events as far as their clocks agree.

        If an event has a fingerprint and its ID exists already, it is not stored again: with the same fingerprint its
        result is the first event, with `repeated` set. Raises IdempotencyConflict if a fingerprint differs, and
        EventTooLarge if the engine cannot store an event. Then nothing is stored.

        From `expires_at_s` on no method returns the event, even if it is deleted later.
        """

    def get(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None: ...

    def page(
        self, tenant_id: str, selection: Selection, order: Order, size: PageSize, after: str | None, now_ms: int
    ) -> Listing:
        """Returns up to `size` of the selected events, whatever their status. Changes nothing.

        `after` is the position returned by an earlier call with the same selection and order: the listing continues
        behind it, whatever was stored since. Raises InvalidRequest if it is anything else. The listing has ended when
        no position is returned; a page may be short or empty before that.
        """

    def peek(self, tenant_id: str, inbox: str, order: Order, size: PageSize, now_ms: int) -> Page:
        """Returns up to `size` events that a claim could return now, or after the settle time. Changes nothing."""

    def claim(
        self,
        tenant_id: str,
        inbox: str,
        size: PageSize,
        now_ms: int,
        lease_until_ms: int | None = None,
        attempt: str | None = None,
    ) -> Page:
        """Returns up to `size` undelivered events, oldest first, and marks them delivered, or leased if
        `lease_until_ms` is given.

        Eligible are the undelivered events of the inbox, except those released with a delay that has not passed and, on
        an engine whose index lags, those younger than the settle time. No event is returned twice: concurrent claims,
        in any process, share the events between them. If an older eligible event cannot be claimed because the store
        does not respond, no event behind it is returned.

        The exception is a claim repeated with the same `attempt` within ATTEMPT_MS, through any process. It returns
        the events of the first claim: those it still holds stay unchanged, those undelivered again are claimed again.
        It leaves out events that another claim holds and adds no others.
        """

    def acknowledge(self, tenant_id: str, receipts: Sequence[Receipt], now_ms: int) -> list[bool]:
        """Marks leased events delivered. Returns True for each event delivered under this lease. Safe to repeat."""

    def release(
        self, tenant_id: str, receipts: Sequence[Receipt], available_at_ms: int, now_ms: int, *, failed: bool = False
    ) -> list[bool]:
        """Makes leased events undelivered again, at their old position. No claim returns them before `available_at_ms`.

        With `failed` the release counts as a lost lease. The last of `max_deliveries` makes the event dead at once.

        Returns True for each event released under this lease, alive or dead. Safe to repeat: the first release
        counts, with its `available_at_ms` and its `failed`.
        """

    def extend(self, tenant_id: str, receipts: Sequence[Receipt], lease_until_ms: int, now_ms: int) -> list[bool]:
        """Changes when leases expire. Returns True for each lease that had neither expired nor been settled."""

    def replay(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        """Makes a delivered or dead event undelivered again, at its old position, with no lost leases.

        An undelivered event stays unchanged. Returns None if the event does not exist; raises EventLeased if it is
        leased.
        """

    def replay_all(self, tenant_id: str, selection: Selection, limit: int, now_ms: int) -> ReplayResult:
        """Replays up to `limit` of the selected events that are delivered or dead, oldest first."""

    def erase(self, tenant_id: str, event_id: str, now_ms: int) -> bool:
        """Deletes the event and its copies in every inbox. Returns True if the event or a copy existed."""

    def purge(self, now_ms: int, limit: int) -> int:
        """Deletes up to `limit` expired rows of all tenants, unless the engine does so automatically.

        Returns the number of deleted rows; fewer than `limit` means that none are left.
        """

    def export_events(self, tenant_id: str, now_ms: int) -> EventExport:
        """Returns every event of the tenant in every inbox, except copies in inboxes that are being deleted.

        The events of each inbox come in its order. Events put or changed after the call may be missing or unchanged.
        """

    def import_events(self, tenant_id: str, records: Sequence[ExportedEvent], now_ms: int) -> ImportResult:
        """Stores exported events with the status they have, without counting them. The inboxes must exist.

        Safe to repeat: an event that exists stays unchanged, unless the source has changed it since the last import
        and this store has not. The inbox is then in the order of the source, whatever the order of the imports: an
        event is inserted before later ones that are stored already. Only events that were claimed keep their place
        among those of the same millisecond.
        """


class InboxStore(Protocol):
    """The named inboxes of a tenant, and whether its inbox `default` is enabled.

    `get` and `all` do not return an inbox that is being deleted.
    """

    def save(self, tenant_id: str, inbox: Inbox, *, replace: bool = True) -> bool:
        """Creates the inbox, or replaces the event types of an existing one. Returns True if it is new.

        Every event put after `save` returns, in any process, is copied to the inbox if its type matches. Raises
        TooManyInboxes if the tenant has MAX_INBOXES others, InboxClosing if an inbox with that name is still being
        deleted, and InboxExists if the inbox exists and `replace` is False. Of several calls without `replace` at the
        same time, one succeeds.
        """

    def get(self, tenant_id: str, name: str) -> Inbox | None: ...

    def all(self, tenant_id: str) -> list[Inbox]:
        """Returns every named inbox of the tenant, sorted by name."""

    def close(self, tenant_id: str, name: str) -> bool:
        """Begins to delete the inbox: once it returns, no event is copied to it.

        Returns True if the inbox existed, open or closing.
        """

    def delete_copies(self, tenant_id: str, name: str, limit: int) -> int:
        """Deletes up to `limit` events of a closed inbox, and with the last of them the inbox.

        Returns the number of deleted events; fewer than `limit` means that the inbox is gone.
        """

    def set_default_enabled(self, tenant_id: str, enabled: bool) -> None:
        """Enables or disables the inbox `default`. Changes no stored event.

        Applies to every put that begins after it returns, in any process.
        """

    def is_default_enabled(self, tenant_id: str) -> bool:
        """Returns True unless the inbox `default` was disabled."""


class CounterStore(Protocol):
    """Statistics of an inbox.

    `received` counts at the event's timestamp, everything else at the time it happened; `dead` when it was written.
    Erased and expired events stay counted. Deleting an inbox deletes its counts.

    An engine that cannot count in the write itself may lack what a process counted within the last minute, and loses it
    if that process is killed.
    """

    def list_counts(self, tenant_id: str, inbox: str, span: Span, since_ms: int) -> list[SpanCounts]:
        """Returns the counts of every hour or day that starts at or after `since_ms`, by event type, in any order."""

    def undelivered(self, tenant_id: str, inbox: str, now_ms: int) -> UndeliveredSummary:
        """Counts the events that a claim could return now. Large counts may be approximate; see the class."""

    def flush(self, at_once: bool = True) -> None:
        """Writes the counts held in memory: all of them, or only those that are due."""

    def recount(self, tenant_id: str, since_ms: int, now_ms: int) -> int:
        """Recomputes the counts of hours and days that start at or after `since_ms` from the stored events.

        Only `received`, the last delivery of each event and the undelivered events can be recomputed: leases, deaths
        and replays keep their counts. Returns the number of counts that changed. No other process should write
        meanwhile, or hold counts in memory.
        """


class KeyStore(Protocol):
    def create(self, key: ApiKey) -> None:
        """Stores the key. Raises NotFound if the tenant does not exist."""

    def get(self, key_id: str) -> ApiKey | None: ...

    def get_by_hash(self, key_hash: str) -> KeyRecord | None:
        """Returns the key and its tenant as stored now. None if the key is unknown or revoked."""

    def all(self, tenant_id: str) -> list[ApiKey]:
        """Returns every key of the tenant, including revoked ones, oldest first."""

    def revoke(self, key_id: str) -> bool:
        """Makes the key invalid. Returns True if the key exists. Safe to repeat."""

    def rotate(self, key_id: str, successor: ApiKey, expires_at_ms: int) -> bool:
        """Stores the successor and makes the key expire at `expires_at_ms`, or earlier if it does so already.

        Both happen or neither. Returns False if the key does not exist, is revoked, or had expired when the successor
        was created.
        """

    def expire(self, key_id: str, expires_at_ms: int) -> bool:
        """Makes the key expire at `expires_at_ms`, or earlier if it does so already.

        Returns False if it does not exist or is revoked.
        """

    def delete(self, key_id: str) -> None:
        """Deletes the key and everything stored about it."""

    def record_use(self, key_hash: str, now_ms: int) -> None:
        """Sets the time of the key's last use, unless a later one is stored."""


class TenantStore(Protocol):
    """Tenants are never removed. Every version of a tenant has an entry in its audit log."""

    def create(self, tenant: Tenant, audit_entries: Sequence[AuditEntry]) -> None:
        """Stores a new tenant together with its audit log.

        Raises TenantExists if the ID is taken, and EmailTaken if another tenant has the email address. Case is ignored.
        """

    def update(self, tenant: Tenant, version: int, audit_entries: Sequence[AuditEntry]) -> bool:
        """Replaces `version` of the tenant and appends to its audit log.

        Returns False, and changes nothing, if the stored version is another. Raises EmailTaken like `create`.
        """

    def get(self, tenant_id: str) -> Tenant | None: ...

    def get_by_email(self, email: str) -> Tenant | None:
        """Returns the tenant with that email address. Case is ignored."""

    def page(self, selection: TenantSelection, limit: int, after: TenantPosition | None) -> list[Tenant]:
        """Returns up to `limit` of the selected tenants behind `after`, newest first.

        The latest changes may be missing for a moment.
        """

    def audit_log(self, tenant_id: str, limit: int, before: int | None) -> list[AuditEntry]:
        """Returns up to `limit` entries with a number below `before`, newest first."""

    def all(self) -> list[Tenant]:
        """Returns every tenant, including deleted ones, sorted by ID.

        On an engine whose indexes lag, the latest changes may be missing.
        """

    def shard(self, tenant_id: str, shards: int, now_ms: int) -> None:
        """Spreads the tenant's new events over `shards` partitions. Stored events stay where they are, in order.

        Raises NotFound if the tenant does not exist, and NotAllowed on an engine without partitions.
        """


class ArrivalWatch(Protocol):
    """Finds inboxes in which events have become claimable, for waiting polls. Not thread-safe."""

    interval_seconds: float
    """Time to wait between two checks."""

    def check(self, waiting: frozenset[InboxKey], now_ms: int) -> set[InboxKey]:
        """Returns those of the waiting inboxes that may have an event to claim. A hint: an inbox may have nothing.

        Every event that becomes claimable is reported, whichever process puts, releases or replays it, and also when
        its lease or delay ends. An inbox that was not passed to the previous check is also reported if it has an event
        that became claimable before.

        SQLite reports an event at the next check, and up to a second later if its lease or delay was shorter than a
        second. DynamoDB reports it within about 2 seconds after the settle time. It takes longer if hundreds of
        inboxes wait in one process.

        Pass the same object while no inbox is added or removed: then a check does not compare thousands of them. A
        check without waiting inboxes is nearly free. After a StoreUnavailable, the next check works again and misses
        nothing.
        """

    def check_soon(self, tenant_ids: Collection[str]) -> None:
        """Examines the inboxes of these tenants earlier than planned, because they may have new events."""

    def close(self) -> None:
        """Closes the watch's connections and threads. Call it before `Store.close`."""


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
        """Creates what the store needs, or migrates it to this release. Safe to repeat."""

    def check(self) -> None:
        """Raises StoreUnavailable unless the store responds and can be written to."""

    def set_batch_listener(self, on_batch: Callable[[int], object]) -> None:
        """Calls `on_batch` after each write that concurrent requests share, with the number of those requests."""

    def watch_arrivals(self) -> ArrivalWatch:
        """Returns a new watch. It does not access the store before its first check."""

    def close(self) -> None:
        """Closes files and connections. The store cannot be used afterwards."""
