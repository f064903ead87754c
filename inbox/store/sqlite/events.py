"""Events in SQLite: put, erased, purged and exported. `SQLiteEvents` inherits the rest of `EventStore`."""

from collections.abc import Sequence

import apsw

from inbox.domain.events import DEFAULT_INBOX, ExportedEvent, NewEvent, PutResult, Status
from inbox.domain.stats import CountChanges, Counts
from inbox.errors import IdempotencyConflict
from inbox.store.sqlite.claims import Claims, purge_attempts
from inbox.store.sqlite.counters import count, count_deleted
from inbox.store.sqlite.database import Row
from inbox.store.sqlite.history import History
from inbox.store.sqlite.inboxes import is_default_enabled, open_inboxes
from inbox.store.sqlite.rows import COLUMNS, seconds, stored_event

_NEWEST_TIMESTAMP = "SELECT timestamp_ms FROM events ORDER BY seq DESC LIMIT 1"

_DELETE_EXPIRED = (
    "DELETE FROM events WHERE tenant_id = ? AND event_id = ? AND expires_at_s <= ? RETURNING tenant_id, inbox, status"
)

# An event that is delivered but has no time of delivery was stored while `default` was disabled.
_FIRST_OF_KEY = f"""
    SELECT fingerprint, timestamp_ms, iif(status = 'delivered' AND delivered_at_ms IS NULL, status, 'undelivered')
    FROM events
    WHERE tenant_id = ? AND event_id = ? AND inbox = '{DEFAULT_INBOX}'"""

_INSERT = """
    INSERT INTO events
        (tenant_id, inbox, event_id, event_type, timestamp_ms, status, fingerprint, payload, expires_at_s)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""

_ERASE = "DELETE FROM events WHERE tenant_id = ? AND event_id = ? RETURNING tenant_id, inbox, status, expires_at_s > ?"

_PURGE = """
    DELETE FROM events WHERE seq IN (
        SELECT seq FROM events INDEXED BY events_by_expiry WHERE expires_at_s <= ? LIMIT ?)
    RETURNING tenant_id, inbox, status"""

_OF_TENANT = """
    tenant_id = :tenant_id AND expires_at_s > :now_s
    AND inbox NOT IN (SELECT name FROM inboxes WHERE tenant_id = :tenant_id AND closing)"""

_COUNT = f"SELECT count(*) FROM events WHERE {_OF_TENANT}"

# By seq: no index has the rows of all inboxes in order.
_EXPORT = f"""
    SELECT fingerprint, expires_at_s, lost_leases, {COLUMNS} FROM events NOT INDEXED
    WHERE {_OF_TENANT} AND seq > :after ORDER BY seq LIMIT :limit"""


class SQLiteEvents(Claims, History):
    def put(self, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int) -> list[PutResult]:
        return self._database.write(lambda connection: _put(connection, tenant_id, events, now_ms, expires_at_s))

    def erase(self, tenant_id: str, event_id: str, now_ms: int) -> bool:
        def transaction(connection: apsw.Connection) -> bool:
            erased: list[Row] = connection.execute(_ERASE, (tenant_id, event_id, seconds(now_ms))).fetchall()
            count_deleted(connection, erased)
            return any(row[-1] for row in erased)

        return self._database.write(transaction)

    def purge(self, now_ms: int, limit: int) -> int:
        def delete_rows(limit: int, connection: apsw.Connection) -> int:
            purged: list[Row] = connection.execute(_PURGE, (seconds(now_ms), limit)).fetchall()
            count_deleted(connection, purged)
            return len(purged) + purge_attempts(connection, now_ms, limit - len(purged))

        return self._database.delete(delete_rows, limit)

    def count(self, tenant_id: str, now_ms: int) -> int:
        return int(self._database.read(_COUNT, {"tenant_id": tenant_id, "now_s": seconds(now_ms)})[0][0])

    def export_events(self, tenant_id: str, after: int, limit: int, now_ms: int) -> list[ExportedEvent]:
        parameters = {"tenant_id": tenant_id, "now_s": seconds(now_ms), "after": after, "limit": limit}
        return [
            ExportedEvent(row[0], stored_event(tuple(row)), fingerprint, expires_at_s, lost_leases)
            for fingerprint, expires_at_s, lost_leases, *row in self._database.read(_EXPORT, parameters)
        ]


def _put(
    connection: apsw.Connection, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int
) -> list[PutResult]:
    newest = connection.execute(_NEWEST_TIMESTAMP).fetchone()
    timestamp_ms = max(now_ms, newest[0]) if newest else now_ms
    named = open_inboxes(connection, tenant_id)
    in_default = Status.UNDELIVERED if is_default_enabled(connection, tenant_id) else Status.DELIVERED
    results, conflicts = [], []
    changes = CountChanges()
    for position, event in enumerate(events):
        first = None
        if event.fingerprint is not None:
            expired = connection.execute(_DELETE_EXPIRED, (tenant_id, event.event_id, seconds(now_ms)))
            count_deleted(connection, expired)
            first = connection.execute(_FIRST_OF_KEY, (tenant_id, event.event_id)).fetchone()
        if first is None:
            copies = (inbox.name for inbox in named if inbox.receives(event.event_type))
            for inbox in (DEFAULT_INBOX, *copies):
                status = in_default if inbox == DEFAULT_INBOX else Status.UNDELIVERED
                fixed = (event.event_id, event.event_type, timestamp_ms, status, event.fingerprint)
                connection.execute(_INSERT, (tenant_id, inbox, *fixed, event.payload.decode(), expires_at_s))
                counts = Counts(received=1, bytes=len(event.payload))
                changes.add(inbox, event.event_type, counts, int(status is Status.UNDELIVERED))
        elif first[0] != event.fingerprint:
            conflicts.append(position)
        stored_at_ms, status = (first[1], Status(first[2])) if first else (timestamp_ms, in_default)
        results.append(PutResult(event.event_id, event.event_type, stored_at_ms, first is not None, status))
    if conflicts:
        raise IdempotencyConflict(conflicts)
    count(connection, tenant_id, timestamp_ms, changes)
    return results
