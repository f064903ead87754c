"""Looking back at events, and sending them round again."""

import json

import apsw

from inbox.domain import stats
from inbox.domain.events import Event, Listing, Order, PageSize, ReplayResult, Selection, Status
from inbox.errors import EventLeased
from inbox.store.sqlite.counting import count_each
from inbox.store.sqlite.database import Database, Row
from inbox.store.sqlite.reopened_inboxes import note_reopened
from inbox.store.sqlite.rows import COLUMNS, as_stored, fitting, seconds
from inbox.store.sqlite.selecting import STORED, parameters, position, statement
from inbox.store.sqlite.settling import Settling

_ONE = f"""
    SELECT {COLUMNS} FROM events WHERE tenant_id = ? AND event_id = ? AND inbox = ? AND expires_at_s > ?"""

_REPLAY = """
    UPDATE events SET
        status = 'undelivered', delivered_at_ms = NULL, lost_leases = 0, claim_id = NULL, until_ms = NULL
    WHERE seq IN (SELECT value FROM json_each(?)) RETURNING event_type"""


class History:
    def __init__(self, database: Database, settling: Settling) -> None:
        self._database = database
        self._settling = settling

    def get(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        rows = self._database.read(_ONE, (tenant_id, event_id, inbox, seconds(now_ms)))
        return self._settling.shown(rows[0], now_ms) if rows else None

    def page(
        self, tenant_id: str, selection: Selection, order: Order, size: PageSize, after: str | None, now_ms: int
    ) -> Listing:
        values = parameters(tenant_id, selection, order, after, now_ms)
        statuses = None if selection.status is None else STORED[selection.status]
        self._settling.before_reading(tenant_id, selection.inbox, now_ms)
        select = statement(COLUMNS, selection, statuses, order)
        rows, more = self._database.scan(select, values, lambda rows: fitting(rows, size))
        events = [as_stored(row) for row in rows]
        return Listing(events, position(events[-1].timestamp_ms, rows[-1][0]) if more else None)

    def replay(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        wanted = (tenant_id, event_id, inbox, seconds(now_ms))

        def act(connection: apsw.Connection) -> Event | None:
            row = connection.execute(_ONE, wanted).fetchone()
            if row is None:
                return None
            event = self._settling.shown(row, now_ms)
            if event.status is Status.LEASED:
                raise EventLeased
            if event.status is Status.UNDELIVERED:
                return event
            if as_stored(row).status is Status.LEASED:
                # It died of its last lease, and nobody has written that down yet.
                count_each(connection, tenant_id, inbox, now_ms, [(event.event_type,)], stats.DEAD, 0)
            replayed: list[Row] = connection.execute(_REPLAY, (json.dumps([row[0]]),)).fetchall()
            count_each(connection, tenant_id, inbox, now_ms, replayed, stats.REPLAYED, 1)
            note_reopened(connection, tenant_id, [inbox])
            return event._replace(status=Status.UNDELIVERED, delivered_at_ms=None)

        return self._database.write(act)

    def replay_all(self, tenant_id: str, selection: Selection, limit: int, now_ms: int) -> ReplayResult:
        statuses = [
            status
            for status in (Status.DELIVERED, Status.DEAD)
            if selection.status is None or selection.status is status
        ]
        if not statuses:
            return ReplayResult(0, more=False)
        select = statement("seq", selection, statuses, Order.OLDEST)
        values = parameters(tenant_id, selection, Order.OLDEST, None, now_ms)

        def act(connection: apsw.Connection) -> ReplayResult:
            found = [seq for (seq,) in connection.execute(f"{select} LIMIT {limit + 1}", values)]
            replayed: list[Row] = connection.execute(_REPLAY, (json.dumps(found[:limit]),)).fetchall()
            count_each(connection, tenant_id, selection.inbox, now_ms, replayed, stats.REPLAYED, 1)
            note_reopened(connection, tenant_id, [selection.inbox] if replayed else [])
            return ReplayResult(len(found[:limit]), more=len(found) > limit)

        return self._settling.write(tenant_id, selection.inbox, now_ms, act)
