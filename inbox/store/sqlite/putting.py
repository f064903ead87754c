"""New events, and their copies for the inboxes that take them."""

from collections.abc import Sequence

import apsw

from inbox.domain import stats
from inbox.domain.events import DEFAULT_INBOX, NewEvent, PutResult, Status
from inbox.domain.stats import CountChanges
from inbox.errors import IdempotencyConflict
from inbox.store.sqlite.counting import count, count_gone
from inbox.store.sqlite.inboxes import is_default_enabled, open_inboxes
from inbox.store.sqlite.rows import seconds

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
