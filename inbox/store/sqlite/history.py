"""Lists, lookups and replays of stored events."""

import json
import re
from collections.abc import Sequence

import apsw

from inbox.domain import stats
from inbox.domain.events import Event, Listing, Order, PageSize, ReplayResult, Selection, Status
from inbox.errors import EventLeased, FieldError, InvalidRequest
from inbox.store.sqlite.count_updates import count_each
from inbox.store.sqlite.database import Database, Row
from inbox.store.sqlite.inboxes import note_reopened
from inbox.store.sqlite.leases import Settling
from inbox.store.sqlite.rows import COLUMNS, HELD, as_stored, fitting, seconds

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


_LAST = 2**63 - 1
_POSITION = re.compile(r"(\d{1,19})-(\d{1,19})", re.ASCII)

STORED = {
    Status.UNDELIVERED: ("undelivered", HELD),
    Status.LEASED: ("leased",),
    Status.DELIVERED: ("delivered",),
    Status.DEAD: ("dead",),
}

_OF_INBOX = "tenant_id = :tenant_id AND inbox = :inbox"
_BEHIND = "(timestamp_ms, seq) > (:low_ms, :low_seq)"
_BEFORE = "(timestamp_ms, seq) < (:high_ms, :high_seq)"

# Within one status the index knows no times, only numbers.
_WITHIN_NUMBERS = f"""
    seq >= (SELECT seq FROM events INDEXED BY events_by_time WHERE {_OF_INBOX} AND {_BEHIND}
            ORDER BY timestamp_ms, seq LIMIT 1)
    AND seq <= (SELECT seq FROM events INDEXED BY events_by_time WHERE {_OF_INBOX} AND {_BEFORE}
            ORDER BY timestamp_ms DESC, seq DESC LIMIT 1)"""


def statement(columns: str, selection: Selection, statuses: Sequence[str] | None, order: Order) -> str:
    """Reads the selected rows in order; `statuses` are the stored ones, None for all."""
    direction = "ASC" if order is Order.OLDEST else "DESC"
    kept = f"{_OF_INBOX} AND expires_at_s > :now_s"
    if selection.event_type is not None:
        kept += " AND event_type = :event_type"
    if statuses is not None and (selection.event_type is None or _are_few(statuses)):
        # Each is in order by itself, and SQLite merges them.
        one = f"SELECT {columns} FROM events INDEXED BY events_by_status WHERE {kept} AND {_WITHIN_NUMBERS}"
        return " UNION ALL ".join(f"{one} AND status = '{status}'" for status in statuses) + f" ORDER BY 1 {direction}"
    if statuses is not None:
        kept += " AND status IN ('" + "', '".join(statuses) + "')"
    index = "events_by_time" if selection.event_type is None else "events_by_type"
    return f"""
        SELECT {columns} FROM events INDEXED BY {index} WHERE {kept} AND {_BEHIND} AND {_BEFORE}
        ORDER BY timestamp_ms {direction}, seq {direction}"""


def parameters(
    tenant_id: str, selection: Selection, order: Order, after: str | None, now_ms: int
) -> dict[str, str | int | None]:
    # No seq is below 0: these two are where a millisecond begins.
    low = (selection.since_ms or 0, -1)
    high = (_LAST if selection.until_ms is None else selection.until_ms, -1)
    if after is not None and order is Order.OLDEST:
        low = max(low, _place(after))
    elif after is not None:
        high = min(high, _place(after))
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


def position(timestamp_ms: int, seq: int) -> str:
    return f"{timestamp_ms}-{seq}"


def _place(after: str) -> tuple[int, int]:
    parts = _POSITION.fullmatch(after)
    if parts is None or max(map(int, parts.groups())) > _LAST:
        raise InvalidRequest([FieldError("/cursor", "This is no cursor that an earlier answer gave.")])
    return int(parts[1]), int(parts[2])


def _are_few(statuses: Sequence[str]) -> bool:
    """Fewer than there are events of one type, as a rule: then the status finds them sooner than the type."""
    return all(status in ("leased", "dead") for status in statuses)
