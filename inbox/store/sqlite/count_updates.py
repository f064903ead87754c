"""Updates the statistics of inboxes, in the same transaction as the events."""

from collections import Counter
from collections.abc import Iterable

import apsw

from inbox.domain.events import Status
from inbox.domain.stats import MAX_TYPES, NO_COUNTS, OTHER_TYPES, CountChanges, Counts, Span
from inbox.store.sqlite.database import Row

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


def count(connection: apsw.Connection, tenant_id: str, at_ms: int, changes: CountChanges) -> None:
    for (inbox, event_type), counts in changes.counts.items():
        if counts != NO_COUNTS:
            for span in Span:
                add(connection, (tenant_id, inbox, span, span.start_ms(at_ms)), event_type, counts)
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
    """Takes rows that begin with tenant ID, inbox and status of a deleted event."""
    fewer = Counter((tenant_id, inbox) for tenant_id, inbox, status, *_ in deleted if status == Status.UNDELIVERED)
    for inbox_key, number in fewer.items():
        connection.execute(_ADD_UNDELIVERED, (*inbox_key, -number))


def add(connection: apsw.Connection, key: tuple[str, str, Span, int], event_type: str | None, counts: Counts) -> None:
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
