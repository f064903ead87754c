"""Statistics of inboxes: counts changes in the transaction that makes them, reads counts and recomputes them."""

from collections import Counter
from collections.abc import Callable, Iterable

import apsw

from inbox.domain.events import Status
from inbox.domain.stats import (
    MAX_TYPES,
    NO_COUNTS,
    OTHER_TYPES,
    CountChanges,
    Counts,
    Span,
    SpanCounts,
    UndeliveredSummary,
)
from inbox.store.sqlite.database import Database, Row
from inbox.store.sqlite.rows import seconds

_SUMS = ", ".join(f"{name} = {name} + ?" for name in Counts._fields)

_OF_INBOX = "tenant_id = ? AND inbox = ? AND span = ?"

_ADD = f"UPDATE counters SET {_SUMS} WHERE {_OF_INBOX} AND start_ms = ? AND event_type = ?"

_HAS_MAX_TYPES = f"SELECT count(*) >= {MAX_TYPES} FROM counters WHERE {_OF_INBOX} AND start_ms = ?"

_INSERT = """
    INSERT INTO counters (tenant_id, inbox, span, start_ms, event_type) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING"""

_DELETE_OLD = f"DELETE FROM counters WHERE {_OF_INBOX} AND start_ms < ?"

_ADD_UNDELIVERED = """
    INSERT INTO backlog (tenant_id, inbox, undelivered) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET undelivered = undelivered + excluded.undelivered"""

_MAX_EXPIRED = 10_000

_COUNTS = ", ".join(Counts._fields)

_LIST = f"""
    SELECT start_ms, event_type, {_COUNTS} FROM counters
    WHERE tenant_id = ? AND inbox = ? AND span = ? AND start_ms >= ?"""

_IS_UNDELIVERED = "tenant_id = :tenant_id AND inbox = :inbox AND status = 'undelivered'"

# Expired events count as undelivered until they are purged, once a minute. There may be millions after a long time
# without a purge, so only some of them are subtracted.
_UNDELIVERED = f"""
    SELECT
        coalesce((SELECT undelivered FROM backlog WHERE tenant_id = :tenant_id AND inbox = :inbox), 0)
        - (SELECT count(*) FROM (SELECT tenant_id, inbox, status FROM events INDEXED BY events_by_expiry
                                 WHERE expires_at_s <= :now_s LIMIT {_MAX_EXPIRED}) WHERE {_IS_UNDELIVERED}),
        (SELECT timestamp_ms FROM events INDEXED BY events_by_status
         WHERE {_IS_UNDELIVERED} AND expires_at_s > :now_s ORDER BY timestamp_ms LIMIT 1)"""

_ALL_OF_TENANT = f"SELECT inbox, span, start_ms, event_type, {_COUNTS} FROM counters WHERE tenant_id = ?"

_RESET = "UPDATE counters SET received = 0, delivered = 0, bytes = 0 WHERE tenant_id = ? AND span = ? AND start_ms >= ?"

# By hour; days are summed up from hours.
_COUNT_EVENTS = f"""
    SELECT inbox, event_type, timestamp_ms / {Span.HOUR.ms} * {Span.HOUR.ms}, count(*), 0, sum(octet_length(payload))
    FROM events WHERE tenant_id = :tenant_id AND expires_at_s > :now_s GROUP BY 1, 2, 3
    UNION ALL
    SELECT inbox, event_type, delivered_at_ms / {Span.HOUR.ms} * {Span.HOUR.ms}, 0, count(*), 0
    FROM events WHERE tenant_id = :tenant_id AND expires_at_s > :now_s AND status = 'delivered'
    AND delivered_at_ms IS NOT NULL GROUP BY 1, 2, 3"""

_DELETE_ZEROS = f"DELETE FROM counters WHERE tenant_id = ? AND max({_COUNTS}) = 0"

_BACKLOG = "SELECT inbox, undelivered FROM backlog WHERE tenant_id = ? AND undelivered <> 0"

_DELETE_BACKLOG = "DELETE FROM backlog WHERE tenant_id = ?"

_COUNT_BACKLOG = """
    INSERT INTO backlog (tenant_id, inbox, undelivered)
    SELECT tenant_id, inbox, count(*) FROM events WHERE tenant_id = ? AND status = 'undelivered' GROUP BY inbox"""


class SQLiteCounters:
    def __init__(self, database: Database, expire_leases: Callable[[str, str, int], None]) -> None:
        self._database = database
        self._expire_leases = expire_leases

    def list_counts(self, tenant_id: str, inbox: str, span: Span, since_ms: int) -> list[SpanCounts]:
        return [
            SpanCounts(start_ms, event_type or None, Counts(*counts))
            for start_ms, event_type, *counts in self._database.read(_LIST, (tenant_id, inbox, span, since_ms))
        ]

    def undelivered(self, tenant_id: str, inbox: str, now_ms: int) -> UndeliveredSummary:
        self._expire_leases(tenant_id, inbox, now_ms)
        parameters = {"tenant_id": tenant_id, "inbox": inbox, "now_s": seconds(now_ms)}
        return UndeliveredSummary(*self._database.read(_UNDELIVERED, parameters)[0])

    def flush(self, at_once: bool = True) -> None:
        """Does nothing: counts are written with the events."""

    def recount(self, tenant_id: str, since_ms: int, now_ms: int) -> int:
        parameters = {"tenant_id": tenant_id, "now_s": seconds(now_ms)}
        since = {span: max(since_ms, now_ms - span.kept_ms) for span in Span}

        def transaction(connection: apsw.Connection) -> int:
            before = _all_of_tenant(connection, tenant_id)
            hours: list[Row] = connection.execute(_COUNT_EVENTS, parameters).fetchall()
            for span in Span:
                connection.execute(_RESET, (tenant_id, span, since[span]))
                for inbox, event_type, hour_ms, received, delivered, payload_bytes in hours:
                    if span.start_ms(hour_ms) >= since[span]:
                        counts = Counts(received=received, delivered=delivered, bytes=payload_bytes)
                        _add(connection, (tenant_id, inbox, span, span.start_ms(hour_ms)), event_type, counts)
            connection.execute(_DELETE_ZEROS, (tenant_id,))
            after = _all_of_tenant(connection, tenant_id)
            changed = sum(
                old != new
                for key in before.keys() | after.keys()
                for old, new in zip(before.get(key, NO_COUNTS), after.get(key, NO_COUNTS), strict=True)
            )
            return changed + _recount_backlog(connection, tenant_id)

        return self._database.write(transaction)


def _all_of_tenant(connection: apsw.Connection, tenant_id: str) -> dict[Row, Counts]:
    rows: list[Row] = connection.execute(_ALL_OF_TENANT, (tenant_id,)).fetchall()
    return {row[: -len(NO_COUNTS)]: Counts(*row[-len(NO_COUNTS) :]) for row in rows}


def _recount_backlog(connection: apsw.Connection, tenant_id: str) -> int:
    before: list[Row] = connection.execute(_BACKLOG, (tenant_id,)).fetchall()
    connection.execute(_DELETE_BACKLOG, (tenant_id,))
    connection.execute(_COUNT_BACKLOG, (tenant_id,))
    after: list[Row] = connection.execute(_BACKLOG, (tenant_id,)).fetchall()
    return len({inbox for inbox, _ in set(before) ^ set(after)})


def count(connection: apsw.Connection, tenant_id: str, at_ms: int, changes: CountChanges) -> None:
    for (inbox, event_type), counts in changes.counts.items():
        if counts != NO_COUNTS:
            for span in Span:
                _add(connection, (tenant_id, inbox, span, span.start_ms(at_ms)), event_type, counts)
    for inbox, undelivered in changes.undelivered.items():
        if undelivered:
            connection.execute(_ADD_UNDELIVERED, (tenant_id, inbox, undelivered))


def count_each(
    connection: apsw.Connection,
    tenant_id: str,
    inbox: str,
    at_ms: int,
    event_types: Iterable[Row],
    counts: Counts,
    undelivered: int,
) -> None:
    """Counts the same change for several events. Each row holds the type of one event."""
    changes = CountChanges()
    for (event_type,), number in Counter(event_types).items():
        changes.add(inbox, event_type, counts.times(number), undelivered * number)
    count(connection, tenant_id, at_ms, changes)


def count_deleted(connection: apsw.Connection, deleted: Iterable[Row]) -> None:
    """Subtracts deleted events from the undelivered ones. Each row begins with tenant ID, inbox and status."""
    fewer = Counter((tenant_id, inbox) for tenant_id, inbox, status, *_ in deleted if status == Status.UNDELIVERED)
    for inbox_key, number in fewer.items():
        connection.execute(_ADD_UNDELIVERED, (*inbox_key, -number))


def _add(connection: apsw.Connection, key: tuple[str, str, Span, int], event_type: str | None, counts: Counts) -> None:
    """Adds to the counts of one hour or day. `key` is tenant ID, inbox, span and start."""
    counted_type = event_type or ""
    connection.execute(_ADD, (*counts, *key, counted_type))
    if connection.changes() == 0:
        *inbox_key, span, start_ms = key
        connection.execute(_DELETE_OLD, (*inbox_key, span, start_ms - span.kept_ms))
        if connection.execute(_HAS_MAX_TYPES, key).fetchone() == (True,):
            counted_type = OTHER_TYPES
        connection.execute(_INSERT, (*key, counted_type))
        connection.execute(_ADD, (*counts, *key, counted_type))
