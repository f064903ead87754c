"""Events in SQLite: put, erased, purged and exported. `SQLiteEvents` inherits the rest of `EventStore`."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import apsw

from inbox.domain.events import (
    DEFAULT_INBOX,
    EventExport,
    ExportedEvent,
    ImportResult,
    NewEvent,
    PutResult,
    Status,
)
from inbox.domain.stats import CountChanges, Counts
from inbox.errors import IdempotencyConflict
from inbox.store.sqlite.claims import Claims, purge_attempts
from inbox.store.sqlite.counters import count, count_deleted
from inbox.store.sqlite.database import Row
from inbox.store.sqlite.history import History
from inbox.store.sqlite.import_events import import_events
from inbox.store.sqlite.inboxes import OPEN, is_default_enabled, open_inboxes
from inbox.store.sqlite.rows import COLUMNS, DELAYED, seconds, stored_event

# Imported events may be newer than the last stored one.
_NEWEST_TIMESTAMP = f"""
    SELECT max(
        coalesce((SELECT timestamp_ms FROM events ORDER BY seq DESC LIMIT 1), 0),
        coalesce((SELECT max(timestamp_ms) FROM events INDEXED BY events_by_time
                  WHERE tenant_id = ? AND inbox = '{DEFAULT_INBOX}'), 0))"""

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

_OF_INBOX = """
    FROM events INDEXED BY events_by_time
    WHERE tenant_id = :tenant_id AND inbox = :inbox AND expires_at_s > :now_s"""

_COUNT = f"SELECT count(*) {_OF_INBOX}"

_EXPORT = f"""
    SELECT fingerprint, expires_at_s, lost_leases, iif(status = '{DELAYED}', until_ms, NULL), {COLUMNS} {_OF_INBOX}
    AND (timestamp_ms, seq) > (:timestamp_ms, :seq) ORDER BY timestamp_ms, seq LIMIT 100"""


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

    def export_events(self, tenant_id: str, now_ms: int) -> EventExport:
        names = [DEFAULT_INBOX, *(name for name, *_ in self._database.read(OPEN, (tenant_id,)))]
        of_inboxes = [{"tenant_id": tenant_id, "inbox": name, "now_s": seconds(now_ms)} for name in names]
        count = sum(self._database.read(_COUNT, of_inbox)[0][0] for of_inbox in of_inboxes)
        return EventExport(count, chain.from_iterable(map(self._export_inbox, of_inboxes)))

    def _export_inbox(self, of_inbox: Mapping[str, str | int]) -> Iterator[ExportedEvent]:
        # In steps: while a statement reads, the log grows.
        timestamp_ms, seq = -1, -1
        while rows := self._database.read(_EXPORT, {**of_inbox, "timestamp_ms": timestamp_ms, "seq": seq}):
            for fingerprint, expires_at_s, lost_leases, available_at_ms, *row in rows:
                event, seq = stored_event(tuple(row)), row[0]
                timestamp_ms = event.timestamp_ms
                yield ExportedEvent(seq, event, fingerprint, expires_at_s, lost_leases, available_at_ms)

    def import_events(self, tenant_id: str, records: Sequence[ExportedEvent], now_ms: int) -> ImportResult:
        written = self._database.write(lambda connection: import_events(connection, tenant_id, records, now_ms))
        return ImportResult(written, [])


def _put(
    connection: apsw.Connection, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int
) -> list[PutResult]:
    timestamp_ms = max(now_ms, connection.execute(_NEWEST_TIMESTAMP, (tenant_id,)).get)
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
