"""The statistics of inboxes: read, and recomputed from the stored events."""

import apsw

from inbox.domain.stats import NO_COUNTS, Counts, Span, SpanCounts, UndeliveredSummary
from inbox.store.sqlite.count_updates import add
from inbox.store.sqlite.database import Database, Row
from inbox.store.sqlite.leases import Leases
from inbox.store.sqlite.rows import seconds

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
         WHERE {_IS_UNDELIVERED} AND expires_at_s > :now_s ORDER BY seq LIMIT 1)"""

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
    def __init__(self, database: Database, leases: Leases) -> None:
        self._database = database
        self._leases = leases

    def list_counts(self, tenant_id: str, inbox: str, span: Span, since_ms: int) -> list[SpanCounts]:
        return [
            SpanCounts(start_ms, event_type or None, Counts(*counts))
            for start_ms, event_type, *counts in self._database.read(_LIST, (tenant_id, inbox, span, since_ms))
        ]

    def undelivered(self, tenant_id: str, inbox: str, now_ms: int) -> UndeliveredSummary:
        self._leases.expire(tenant_id, inbox, now_ms)
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
                        add(connection, (tenant_id, inbox, span, span.start_ms(hour_ms)), event_type, counts)
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
