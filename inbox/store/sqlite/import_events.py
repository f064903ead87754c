"""Imports events from another store."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from inbox.domain.events import ExportedEvent, Status
from inbox.domain.stats import NO_COUNTS, CountChanges
from inbox.store.sqlite.counters import count
from inbox.store.sqlite.database import Row
from inbox.store.sqlite.inboxes import note_reopened
from inbox.store.sqlite.rows import DELAYED

_STORED = """
    SELECT seq, imported_state, status, deliveries, until_ms, claim_id FROM events
    WHERE tenant_id = ? AND event_id = ? AND inbox = ?"""

_STATE = """
    status = :status, deliveries = :deliveries, lost_leases = :lost_leases, delivered_at_ms = :delivered_at_ms,
    claim_id = :claim_id, until_ms = :until_ms, imported_state = :imported_state"""

_UPDATE = f"UPDATE events SET {_STATE} WHERE seq = :seq"

_INSERT = """
    INSERT INTO events
        (tenant_id, inbox, event_id, event_type, timestamp_ms, expires_at_s, status, deliveries, lost_leases,
         delivered_at_ms, claim_id, until_ms, fingerprint, payload, imported_order, imported_state)
    VALUES
        (:tenant_id, :inbox, :event_id, :event_type, :timestamp_ms, :expires_at_s, :status, :deliveries, :lost_leases,
         :delivered_at_ms, :claim_id, :until_ms, :fingerprint, :payload, :imported_order, :imported_state)"""

_OF_SAME_MS = """
    FROM events INDEXED BY events_by_time
    WHERE tenant_id = :tenant_id AND inbox = :inbox AND timestamp_ms = :timestamp_ms"""

_LAST_OF_SAME_MS = f"SELECT imported_order {_OF_SAME_MS} ORDER BY seq DESC LIMIT 1"

# A repeated claim finds its events by seq.
_LATER = f"""
    SELECT seq {_OF_SAME_MS} AND imported_order > :imported_order AND claim_id IS NULL ORDER BY imported_order"""

_MOVE_TO_END = "UPDATE events SET seq = (SELECT max(seq) + 1 FROM events) WHERE seq = ?"


class _StoredEvent(NamedTuple):
    seq: int
    imported_state: str | None
    status: str
    deliveries: int
    until_ms: int | None
    claim_id: str | None


def import_events(connection: apsw.Connection, tenant_id: str, records: Sequence[ExportedEvent], now_ms: int) -> int:
    """Returns the number of written events."""
    written, changes = 0, CountChanges()
    for record in records:
        event = record.event
        values = _values(tenant_id, record)
        row = connection.execute(_STORED, (tenant_id, event.event_id, event.inbox)).fetchone()
        stored = None if row is None else _StoredEvent(*row)
        if stored is None:
            _insert(connection, values)
        elif _is_outdated(stored, values["imported_state"], now_ms):
            connection.execute(_UPDATE, {**values, "seq": stored.seq})
        else:
            continue
        written += 1
        was_undelivered = stored is not None and stored.status == Status.UNDELIVERED
        undelivered = int(values["status"] == Status.UNDELIVERED) - was_undelivered
        changes.add(event.inbox, event.event_type, NO_COUNTS, undelivered)
    count(connection, tenant_id, now_ms, changes)
    note_reopened(connection, tenant_id, [inbox for inbox, more in changes.undelivered.items() if more > 0])
    return written


def _insert(connection: apsw.Connection, values: dict[str, Any]) -> None:
    last = connection.execute(_LAST_OF_SAME_MS, values).fetchone()
    # Usually none: events come in order.
    is_late = last is not None and last[0] is not None and last[0] > values["imported_order"]
    later: list[Row] = connection.execute(_LATER, values).fetchall() if is_late else []
    connection.execute(_INSERT, values)
    for row in later:
        connection.execute(_MOVE_TO_END, row)


def _values(tenant_id: str, record: ExportedEvent) -> dict[str, Any]:
    event, lease = record.event, record.event.lease
    status = event.status if record.available_at_ms is None else DELAYED
    until_ms = lease.expires_at_ms if lease else record.available_at_ms
    return {
        "tenant_id": tenant_id,
        "inbox": event.inbox,
        "event_id": event.event_id,
        "event_type": event.event_type,
        "timestamp_ms": event.timestamp_ms,
        "expires_at_s": record.expires_at_s,
        "status": status,
        "deliveries": event.deliveries,
        "lost_leases": record.lost_leases,
        "delivered_at_ms": event.delivered_at_ms,
        "claim_id": lease.claim_id if lease else None,
        "until_ms": until_ms,
        "fingerprint": record.fingerprint,
        "payload": event.payload.decode(),
        "imported_order": f"{record.number:016x}-{record.origin}",
        "imported_state": _format_state(status, event.deliveries, until_ms),
    }


def _format_state(status: str, deliveries: int, until_ms: int | None) -> str:
    return f"{status} {deliveries} {until_ms or 0}"


def _is_outdated(stored: _StoredEvent, source_state: str, now_ms: int) -> bool:
    """Returns True if the source has changed the event since the last import and this store has not."""
    if stored.imported_state is None or stored.imported_state == source_state:
        return False
    if stored.imported_state == _format_state(stored.status, stored.deliveries, stored.until_ms):
        return True
    # The end of an imported lease or delay is no change of this store. It leaves no claim, and a release does.
    _, deliveries, until_ms = stored.imported_state.split(" ")
    return stored.claim_id is None and int(deliveries) == stored.deliveries and 0 < int(until_ms) <= now_ms
