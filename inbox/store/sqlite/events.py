"""Events in SQLite."""

from collections.abc import Sequence

import apsw

from inbox.errors import IdempotencyConflict
from inbox.events import Event, NewEvent, Order, Page, Status, Stored
from inbox.store.sqlite.database import Database, Row

_COLUMNS = "event_id, event_type, timestamp_ms, status, deliveries, delivered_at_ms, payload"

_NEWEST_TIMESTAMP = "SELECT timestamp_ms FROM events ORDER BY seq DESC LIMIT 1"

_FIRST_UNDER_KEY = """
    SELECT fingerprint, timestamp_ms FROM events WHERE tenant_id = ? AND event_id = ?"""

_INSERT = """
    INSERT INTO events (tenant_id, event_id, event_type, timestamp_ms, status, fingerprint, payload)
    VALUES (?, ?, ?, ?, 'undelivered', ?, ?)"""

_GET = f"SELECT {_COLUMNS} FROM events WHERE tenant_id = ? AND event_id = ?"

_PAGE = {
    Order.OLDEST: f"SELECT {_COLUMNS} FROM events WHERE tenant_id = ? AND status = ? ORDER BY seq LIMIT ?",
    Order.NEWEST: f"SELECT {_COLUMNS} FROM events WHERE tenant_id = ? AND status = ? ORDER BY seq DESC LIMIT ?",
}

_ANY_UNDELIVERED = """
    SELECT 1 FROM events WHERE tenant_id = ? AND status = 'undelivered' LIMIT 1"""

# The status stands in the statement once more, where the index is not asked: it is the claim's own condition.
_CLAIM = f"""
    UPDATE events SET status = 'delivered', deliveries = deliveries + 1, delivered_at_ms = ?
    WHERE status = 'undelivered' AND seq IN (
        SELECT seq FROM events WHERE tenant_id = ? AND status = 'undelivered' ORDER BY seq LIMIT ?)
    RETURNING seq, {_COLUMNS}"""


class SQLiteEvents:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, tenant_id: str, events: Sequence[NewEvent], now_ms: int) -> list[Stored]:
        def act(connection: apsw.Connection) -> list[Stored]:
            newest = connection.execute(_NEWEST_TIMESTAMP).fetchone()
            timestamp_ms = max(now_ms, newest[0]) if newest else now_ms
            stored, conflicts = [], []
            for position, event in enumerate(events):
                first = None
                if event.fingerprint is not None:
                    first = connection.execute(_FIRST_UNDER_KEY, (tenant_id, event.event_id)).fetchone()
                if first is None:
                    _insert(connection, tenant_id, event, timestamp_ms)
                elif first[0] != event.fingerprint:
                    conflicts.append(position)
                happened_ms = first[1] if first else timestamp_ms
                stored.append(Stored(event.event_id, event.event_type, happened_ms, replayed=first is not None))
            if conflicts:
                raise IdempotencyConflict(conflicts)
            return stored

        return self._database.write(act)

    def get(self, tenant_id: str, event_id: str) -> Event | None:
        rows = self._database.read(_GET, (tenant_id, event_id))
        return _event(rows[0]) if rows else None

    def page(self, tenant_id: str, status: Status, order: Order, limit: int) -> Page:
        rows = self._database.read(_PAGE[order], (tenant_id, status, limit + 1))
        return Page([_event(row) for row in rows[:limit]], more=len(rows) > limit)

    def claim(self, tenant_id: str, limit: int, now_ms: int) -> Page:
        def act(connection: apsw.Connection) -> tuple[list[Row], bool]:
            claimed = connection.execute(_CLAIM, (now_ms, tenant_id, limit)).fetchall()
            return claimed, connection.execute(_ANY_UNDELIVERED, (tenant_id,)).fetchone() is not None

        # Most polls find nothing, and finding nothing needs no write lock.
        if not self._database.read(_ANY_UNDELIVERED, (tenant_id,)):
            return Page([], more=False)
        claimed, more = self._database.write(act)
        # RETURNING promises no order.
        return Page([_event(row[1:]) for row in sorted(claimed)], more)


def _insert(connection: apsw.Connection, tenant_id: str, event: NewEvent, timestamp_ms: int) -> None:
    row = (
        tenant_id,
        event.event_id,
        event.event_type,
        timestamp_ms,
        event.fingerprint,
        event.payload.decode(),
    )
    connection.execute(_INSERT, row)


def _event(row: Row) -> Event:
    event_id, event_type, timestamp_ms, status, deliveries, delivered_at_ms, payload = row
    return Event(event_id, event_type, timestamp_ms, Status(status), deliveries, delivered_at_ms, payload.encode())
