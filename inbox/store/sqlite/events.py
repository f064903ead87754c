"""Events in SQLite."""

from collections.abc import Sequence

import apsw

from inbox.domain import stats
from inbox.domain.events import (
    DEFAULT_INBOX,
    Event,
    ExportedEvent,
    Listing,
    NewEvent,
    Order,
    Page,
    PageSize,
    PutResult,
    Receipt,
    ReplayResult,
    Selection,
    Status,
)
from inbox.domain.stats import CountChanges
from inbox.errors import IdempotencyConflict
from inbox.store.sqlite.claims import Claiming, purge_attempts
from inbox.store.sqlite.count_updates import count, count_gone
from inbox.store.sqlite.database import Database, Row
from inbox.store.sqlite.history import History
from inbox.store.sqlite.inboxes import is_default_enabled, open_inboxes
from inbox.store.sqlite.leases import Leases, Settling
from inbox.store.sqlite.rows import COLUMNS, as_stored, seconds

_ERASE = "DELETE FROM events WHERE tenant_id = ? AND event_id = ? RETURNING tenant_id, inbox, status, expires_at_s > ?"

_PURGE = """
    DELETE FROM events WHERE seq IN (
        SELECT seq FROM events INDEXED BY events_by_expiry WHERE expires_at_s <= ? LIMIT ?)
    RETURNING tenant_id, inbox, status"""

_OF_TENANT = """
    tenant_id = :tenant_id AND expires_at_s > :now_s
    AND inbox NOT IN (SELECT name FROM inboxes WHERE tenant_id = :tenant_id AND closing)"""

_COUNT = f"SELECT count(*) FROM events WHERE {_OF_TENANT}"

# From one number to the next: no other index has the rows of all inboxes in order.
_RECORDS = f"""
    SELECT fingerprint, expires_at_s, lost_leases, {COLUMNS} FROM events NOT INDEXED
    WHERE {_OF_TENANT} AND seq > :after ORDER BY seq LIMIT :limit"""


class SQLiteEvents:
    def __init__(self, database: Database, settling: Settling) -> None:
        self._database = database
        self._claiming = Claiming(database, settling)
        self._leases = Leases(database, settling.max_deliveries)
        self._history = History(database, settling)

    def put(self, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int) -> list[PutResult]:
        return self._database.write(lambda connection: put(connection, tenant_id, events, now_ms, expires_at_s))

    def get(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        return self._history.get(tenant_id, inbox, event_id, now_ms)

    def page(
        self, tenant_id: str, selection: Selection, order: Order, size: PageSize, after: str | None, now_ms: int
    ) -> Listing:
        return self._history.page(tenant_id, selection, order, size, after, now_ms)

    def peek(self, tenant_id: str, inbox: str, order: Order, size: PageSize, now_ms: int) -> Page:
        return self._claiming.peek(tenant_id, inbox, order, size, now_ms)

    def claim(
        self,
        tenant_id: str,
        inbox: str,
        size: PageSize,
        now_ms: int,
        lease_until_ms: int | None = None,
        attempt: str | None = None,
    ) -> Page:
        return self._claiming.claim(tenant_id, inbox, size, now_ms, lease_until_ms, attempt)

    def acknowledge(self, tenant_id: str, receipts: Sequence[Receipt], now_ms: int) -> list[bool]:
        return self._leases.acknowledge(tenant_id, receipts, now_ms)

    def release(
        self, tenant_id: str, receipts: Sequence[Receipt], available_at_ms: int, now_ms: int, *, failed: bool = False
    ) -> list[bool]:
        return self._leases.release(tenant_id, receipts, available_at_ms, now_ms, failed=failed)

    def extend(self, tenant_id: str, receipts: Sequence[Receipt], lease_until_ms: int, now_ms: int) -> list[bool]:
        return self._leases.extend(tenant_id, receipts, lease_until_ms, now_ms)

    def replay(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        return self._history.replay(tenant_id, inbox, event_id, now_ms)

    def replay_all(self, tenant_id: str, selection: Selection, limit: int, now_ms: int) -> ReplayResult:
        return self._history.replay_all(tenant_id, selection, limit, now_ms)

    def erase(self, tenant_id: str, event_id: str, now_ms: int) -> bool:
        def act(connection: apsw.Connection) -> bool:
            erased: list[Row] = connection.execute(_ERASE, (tenant_id, event_id, seconds(now_ms))).fetchall()
            count_gone(connection, erased)
            return any(row[-1] for row in erased)

        return self._database.write(act)

    def purge(self, now_ms: int, limit: int) -> int:
        def delete_rows(limit: int, connection: apsw.Connection) -> int:
            purged: list[Row] = connection.execute(_PURGE, (seconds(now_ms), limit)).fetchall()
            count_gone(connection, purged)
            deleted = len(purged)
            return deleted + purge_attempts(connection, now_ms, limit - deleted)

        return self._database.delete(delete_rows, limit)

    def count(self, tenant_id: str, now_ms: int) -> int:
        count: int = self._database.read(_COUNT, {"tenant_id": tenant_id, "now_s": seconds(now_ms)})[0][0]
        return count

    def export_events(self, tenant_id: str, after: int, limit: int, now_ms: int) -> list[ExportedEvent]:
        wanted = {"tenant_id": tenant_id, "now_s": seconds(now_ms), "after": after, "limit": limit}
        return [
            ExportedEvent(row[0], as_stored(tuple(row)), fingerprint, expires_at_s, lost_leases)
            for fingerprint, expires_at_s, lost_leases, *row in self._database.read(_RECORDS, wanted)
        ]


_NEWEST_TIMESTAMP = "SELECT timestamp_ms FROM events ORDER BY seq DESC LIMIT 1"

_FORGET_EXPIRED = (
    "DELETE FROM events WHERE tenant_id = ? AND event_id = ? AND expires_at_s <= ? RETURNING tenant_id, inbox, status"
)

# A delivered event that was never handed out came while `default` was off.
_FIRST_UNDER_KEY = f"""
    SELECT fingerprint, timestamp_ms, iif(status = 'delivered' AND delivered_at_ms IS NULL, status, 'undelivered')
    FROM events
    WHERE tenant_id = ? AND event_id = ? AND inbox = '{DEFAULT_INBOX}'"""

_INSERT = """
    INSERT INTO events
        (tenant_id, inbox, event_id, event_type, timestamp_ms, status, fingerprint, payload, expires_at_s)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""


def put(
    connection: apsw.Connection, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int
) -> list[PutResult]:
    newest = connection.execute(_NEWEST_TIMESTAMP).fetchone()
    timestamp_ms = max(now_ms, newest[0]) if newest else now_ms
    named = open_inboxes(connection, tenant_id)
    in_default = Status.UNDELIVERED if is_default_enabled(connection, tenant_id) else Status.DELIVERED
    stored, conflicts = [], []
    changes = CountChanges()
    for position, event in enumerate(events):
        first = None
        if event.fingerprint is not None:
            count_gone(connection, connection.execute(_FORGET_EXPIRED, (tenant_id, event.event_id, seconds(now_ms))))
            first = connection.execute(_FIRST_UNDER_KEY, (tenant_id, event.event_id)).fetchone()
        if first is None:
            takers = (inbox.name for inbox in named if inbox.takes(event.event_type))
            for inbox in (DEFAULT_INBOX, *takers):
                status = in_default if inbox == DEFAULT_INBOX else Status.UNDELIVERED
                _insert(connection, tenant_id, inbox, event, timestamp_ms, status, expires_at_s)
                undelivered = int(status is Status.UNDELIVERED)
                changes.add(inbox, event.event_type, stats.received(len(event.payload)), undelivered)
        elif first[0] != event.fingerprint:
            conflicts.append(position)
        happened_ms, status = (first[1], Status(first[2])) if first else (timestamp_ms, in_default)
        stored.append(PutResult(event.event_id, event.event_type, happened_ms, first is not None, status))
    if conflicts:
        raise IdempotencyConflict(conflicts)
    count(connection, tenant_id, timestamp_ms, changes)
    return stored


def _insert(
    connection: apsw.Connection,
    tenant_id: str,
    inbox: str,
    event: NewEvent,
    timestamp_ms: int,
    status: Status,
    expires_at_s: int,
) -> None:
    row = (
        tenant_id,
        inbox,
        event.event_id,
        event.event_type,
        timestamp_ms,
        status,
        event.fingerprint,
        event.payload.decode(),
        expires_at_s,
    )
    connection.execute(_INSERT, row)
