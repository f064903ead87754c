"""Events in SQLite."""

from collections.abc import Sequence

import apsw

from inbox.errors import IdempotencyConflict
from inbox.events import Event, NewEvent, Order, Page, PageSize, Record, Status, Stored
from inbox.store.sqlite.database import Database, Row

_COLUMNS = "seq, event_id, event_type, timestamp_ms, status, deliveries, delivered_at_ms, payload"

_NEWEST_TIMESTAMP = "SELECT timestamp_ms FROM events ORDER BY seq DESC LIMIT 1"

_FORGET_EXPIRED = "DELETE FROM events WHERE tenant_id = ? AND event_id = ? AND expires_at_s <= ?"

_FIRST_UNDER_KEY = """
    SELECT fingerprint, timestamp_ms FROM events WHERE tenant_id = ? AND event_id = ?"""

_INSERT = """
    INSERT INTO events (tenant_id, event_id, event_type, timestamp_ms, status, fingerprint, payload, expires_at_s)
    VALUES (?, ?, ?, ?, 'undelivered', ?, ?, ?)"""

_GET = f"SELECT {_COLUMNS} FROM events WHERE tenant_id = ? AND event_id = ? AND expires_at_s > ?"

_COUNT = "SELECT count(*) FROM events WHERE tenant_id = ? AND expires_at_s > ?"

_RECORDS = f"""
    SELECT fingerprint, expires_at_s, {_COLUMNS} FROM events
    WHERE tenant_id = ? AND expires_at_s > ? AND seq > ? ORDER BY seq LIMIT ?"""

_ANY_UNDELIVERED = """
    SELECT 1 FROM events WHERE tenant_id = ? AND status = 'undelivered' AND expires_at_s > ? LIMIT 1"""


def _fitting(direction: str) -> str:
    """The events that go on a page: always the first, and no further one once those before it are large enough."""
    return f"""
        SELECT seq FROM (
            SELECT seq, sum(bytes) OVER (ORDER BY seq {direction} ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
            FROM (
                SELECT seq, octet_length(payload) AS bytes FROM events
                WHERE tenant_id = ? AND status = ? AND expires_at_s > ? ORDER BY seq {direction} LIMIT ?))
        WHERE bytes_before < ?"""


_PAGE = {
    Order.OLDEST: f"SELECT {_COLUMNS} FROM events WHERE seq IN ({_fitting('ASC')}) ORDER BY seq",
    Order.NEWEST: f"SELECT {_COLUMNS} FROM events WHERE seq IN ({_fitting('DESC')}) ORDER BY seq DESC",
}

_ANY_BEYOND = {
    Order.OLDEST: "SELECT 1 FROM events WHERE tenant_id = ? AND status = ? AND expires_at_s > ? AND seq > ? LIMIT 1",
    Order.NEWEST: "SELECT 1 FROM events WHERE tenant_id = ? AND status = ? AND expires_at_s > ? AND seq < ? LIMIT 1",
}

# The status once more: it is the claim's own condition, wherever the numbers came from.
_CLAIM = f"""
    UPDATE events SET status = 'delivered', deliveries = deliveries + 1, delivered_at_ms = ?
    WHERE status = 'undelivered' AND seq IN ({_fitting("ASC")})
    RETURNING {_COLUMNS}"""


class SQLiteEvents:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, tenant_id: str, events: Sequence[NewEvent], now_ms: int, expires_at_s: int) -> list[Stored]:
        def act(connection: apsw.Connection) -> list[Stored]:
            newest = connection.execute(_NEWEST_TIMESTAMP).fetchone()
            timestamp_ms = max(now_ms, newest[0]) if newest else now_ms
            stored, conflicts = [], []
            for position, event in enumerate(events):
                first = None
                if event.fingerprint is not None:
                    connection.execute(_FORGET_EXPIRED, (tenant_id, event.event_id, _seconds(now_ms)))
                    first = connection.execute(_FIRST_UNDER_KEY, (tenant_id, event.event_id)).fetchone()
                if first is None:
                    _insert(connection, tenant_id, event, timestamp_ms, expires_at_s)
                elif first[0] != event.fingerprint:
                    conflicts.append(position)
                happened_ms = first[1] if first else timestamp_ms
                stored.append(Stored(event.event_id, event.event_type, happened_ms, replayed=first is not None))
            if conflicts:
                raise IdempotencyConflict(conflicts)
            return stored

        return self._database.write(act)

    def get(self, tenant_id: str, event_id: str, now_ms: int) -> Event | None:
        rows = self._database.read(_GET, (tenant_id, event_id, _seconds(now_ms)))
        return _event(rows[0]) if rows else None

    def page(self, tenant_id: str, status: Status, order: Order, size: PageSize, now_ms: int) -> Page:
        eligible = (tenant_id, status, _seconds(now_ms))
        rows = self._database.read(_PAGE[order], (*eligible, size.events, size.payload_bytes))
        if not rows:
            return Page([], more=False)
        beyond = self._database.read(_ANY_BEYOND[order], (*eligible, rows[-1][0]))
        return Page([_event(row) for row in rows], more=bool(beyond))

    def claim(self, tenant_id: str, size: PageSize, now_ms: int) -> Page:
        wanted = (now_ms, tenant_id, Status.UNDELIVERED, _seconds(now_ms), size.events, size.payload_bytes)
        eligible = (tenant_id, _seconds(now_ms))

        def act(connection: apsw.Connection) -> tuple[list[Row], bool]:
            claimed = connection.execute(_CLAIM, wanted).fetchall()
            return claimed, connection.execute(_ANY_UNDELIVERED, eligible).fetchone() is not None

        # Most polls find nothing, and finding nothing needs no write lock.
        if not self._database.read(_ANY_UNDELIVERED, eligible):
            return Page([], more=False)
        claimed, more = self._database.write(act)
        # RETURNING promises no order.
        return Page([_event(row) for row in sorted(claimed)], more)

    def count(self, tenant_id: str, now_ms: int) -> int:
        count: int = self._database.read(_COUNT, (tenant_id, _seconds(now_ms)))[0][0]
        return count

    def records(self, tenant_id: str, after: int, most: int, now_ms: int) -> list[Record]:
        rows = self._database.read(_RECORDS, (tenant_id, _seconds(now_ms), after, most))
        return [
            Record(row[0], _event(tuple(row)), fingerprint, expires_at_s) for fingerprint, expires_at_s, *row in rows
        ]


def _insert(connection: apsw.Connection, tenant_id: str, event: NewEvent, timestamp_ms: int, expires_at_s: int) -> None:
    row = (
        tenant_id,
        event.event_id,
        event.event_type,
        timestamp_ms,
        event.fingerprint,
        event.payload.decode(),
        expires_at_s,
    )
    connection.execute(_INSERT, row)


def _seconds(now_ms: int) -> int:
    return now_ms // 1000


def _event(row: Row) -> Event:
    _seq, event_id, event_type, timestamp_ms, status, deliveries, delivered_at_ms, payload = row
    return Event(event_id, event_type, timestamp_ms, Status(status), deliveries, delivered_at_ms, payload.encode())
