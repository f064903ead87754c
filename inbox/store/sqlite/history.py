"""Lookup, listing and replay of stored events.

A listing reads one index, in order, from its position on. An inbox is ordered by timestamp and seq, and a position is
the pair of both.
"""

import json
import re
from collections.abc import Sequence

import apsw

from inbox.domain import stats
from inbox.domain.events import Event, Listing, Order, PageSize, ReplayResult, Selection, Status
from inbox.errors import EventLeased, FieldError, InvalidRequest
from inbox.store.sqlite.counters import count_each
from inbox.store.sqlite.database import Row
from inbox.store.sqlite.inboxes import note_reopened
from inbox.store.sqlite.leases import Leases
from inbox.store.sqlite.rows import COLUMNS, DELAYED, fit_page, seconds, stored_event

_GET = f"""
    SELECT {COLUMNS} FROM events WHERE tenant_id = ? AND event_id = ? AND inbox = ? AND expires_at_s > ?"""

_REPLAY = """
    UPDATE events SET
        status = 'undelivered', delivered_at_ms = NULL, lost_leases = 0, claim_id = NULL, until_ms = NULL
    WHERE seq IN (SELECT value FROM json_each(?)) RETURNING event_type"""

STORED_STATUSES = {
    Status.UNDELIVERED: ("undelivered", DELAYED),
    Status.LEASED: ("leased",),
    Status.DELIVERED: ("delivered",),
    Status.DEAD: ("dead",),
}

_MAX_INTEGER = 2**63 - 1
_POSITION = re.compile(r"(\d{1,19})-(\d{1,19})", re.ASCII)

_OF_INBOX = "tenant_id = :tenant_id AND inbox = :inbox"
_AFTER = "(timestamp_ms, seq) > (:low_ms, :low_seq)"
_BEFORE = "(timestamp_ms, seq) < (:high_ms, :high_seq)"


class History(Leases):
    def get(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        rows = self._database.read(_GET, (tenant_id, event_id, inbox, seconds(now_ms)))
        return self.current_event(rows[0], now_ms) if rows else None

    def page(
        self, tenant_id: str, selection: Selection, order: Order, size: PageSize, after: str | None, now_ms: int
    ) -> Listing:
        parameters = selection_parameters(tenant_id, selection, order, after, now_ms)
        statuses = None if selection.status is None else STORED_STATUSES[selection.status]
        self.expire_leases(tenant_id, selection.inbox, now_ms)
        select = selection_statement(COLUMNS, selection, statuses, order)
        rows, more = self._database.scan(select, parameters, lambda rows: fit_page(rows, size))
        events = [stored_event(row) for row in rows]
        return Listing(events, f"{events[-1].timestamp_ms}-{rows[-1][0]}" if more else None)

    def replay(self, tenant_id: str, inbox: str, event_id: str, now_ms: int) -> Event | None:
        parameters = (tenant_id, event_id, inbox, seconds(now_ms))

        def transaction(connection: apsw.Connection) -> Event | None:
            row = connection.execute(_GET, parameters).fetchone()
            if row is None:
                return None
            event = self.current_event(row, now_ms)
            if event.status is Status.LEASED:
                raise EventLeased
            if event.status is Status.UNDELIVERED:
                return event
            if stored_event(row).status is Status.LEASED:
                # The event died when its lease expired, which has not been written or counted yet.
                count_each(connection, tenant_id, inbox, now_ms, [(event.event_type,)], stats.DEAD, 0)
            replayed: list[Row] = connection.execute(_REPLAY, (json.dumps([row[0]]),)).fetchall()
            count_each(connection, tenant_id, inbox, now_ms, replayed, stats.REPLAYED, 1)
            note_reopened(connection, tenant_id, [inbox])
            return event._replace(status=Status.UNDELIVERED, delivered_at_ms=None)

        return self._database.write(transaction)

    def replay_all(self, tenant_id: str, selection: Selection, limit: int, now_ms: int) -> ReplayResult:
        statuses = [status for status in (Status.DELIVERED, Status.DEAD) if selection.status in (None, status)]
        if not statuses:
            return ReplayResult(0, more=False)
        select = f"{selection_statement('seq, timestamp_ms', selection, statuses, Order.OLDEST)} LIMIT {limit + 1}"
        parameters = selection_parameters(tenant_id, selection, Order.OLDEST, None, now_ms)

        def transaction(connection: apsw.Connection) -> ReplayResult:
            found = [seq for seq, _ in connection.execute(select, parameters)]
            replayed: list[Row] = connection.execute(_REPLAY, (json.dumps(found[:limit]),)).fetchall()
            count_each(connection, tenant_id, selection.inbox, now_ms, replayed, stats.REPLAYED, 1)
            note_reopened(connection, tenant_id, [selection.inbox] if replayed else [])
            return ReplayResult(len(replayed), more=len(found) > limit)

        return self.expire_and_write(tenant_id, selection.inbox, now_ms, transaction)


def selection_statement(columns: str, selection: Selection, statuses: Sequence[str] | None, order: Order) -> str:
    """Returns SQL that reads the selected events in order. `statuses` are stored ones, None for all."""
    direction = "ASC" if order is Order.OLDEST else "DESC"
    in_order = f"ORDER BY timestamp_ms {direction}, seq {direction}"
    where = f"{_OF_INBOX} AND expires_at_s > :now_s AND {_AFTER} AND {_BEFORE}"
    if selection.event_type is not None:
        where += " AND event_type = :event_type"
    if statuses is not None and (selection.event_type is None or _are_rare(statuses)):
        # The rows of each status are in order, and SQLite merges them.
        one = f"SELECT {columns} FROM events INDEXED BY events_by_status WHERE {where}"
        return " UNION ALL ".join(f"{one} AND status = '{status}'" for status in statuses) + f" {in_order}"
    if statuses is not None:
        where += " AND status IN ('" + "', '".join(statuses) + "')"
    index = "events_by_time" if selection.event_type is None else "events_by_type"
    return f"SELECT {columns} FROM events INDEXED BY {index} WHERE {where} {in_order}"


def selection_parameters(
    tenant_id: str, selection: Selection, order: Order, after: str | None, now_ms: int
) -> dict[str, str | int | None]:
    # seq is never negative, so both include every event of their millisecond.
    low = (selection.since_ms or 0, -1)
    high = (_MAX_INTEGER if selection.until_ms is None else selection.until_ms, -1)
    if after is not None and order is Order.OLDEST:
        low = max(low, _parse_position(after))
    elif after is not None:
        high = min(high, _parse_position(after))
    return {
        "tenant_id": tenant_id,
        "inbox": selection.inbox,
        "event_type": selection.event_type,
        "now_s": seconds(now_ms),
        "low_ms": low[0],
        "low_seq": low[1],
        "high_ms": high[0],
        "high_seq": high[1],
    }


def _parse_position(cursor: str) -> tuple[int, int]:
    parts = _POSITION.fullmatch(cursor)
    if parts is None or max(map(int, parts.groups())) > _MAX_INTEGER:
        raise InvalidRequest([FieldError("/cursor", "`cursor` is not from this list.")])
    return int(parts[1]), int(parts[2])


def _are_rare(statuses: Sequence[str]) -> bool:
    """Returns True if usually fewer events have the status than the type, so that the index by status is faster."""
    return all(status in ("leased", "dead") for status in statuses)
