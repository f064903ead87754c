"""Counting what becomes of events, in the transaction in which it becomes of them."""

from collections import Counter
from collections.abc import Iterable

import apsw

from inbox.domain.events import Status
from inbox.domain.stats import MAX_TYPES, NO_COUNTS, OTHER_TYPES, CountChanges, Counts, Span
from inbox.store.sqlite.database import Row

_SUMS = ", ".join(f"{name} = {name} + ?" for name in Counts._fields)

_PLACE = "tenant_id = ? AND inbox = ? AND span = ?"

_ADD = f"UPDATE counters SET {_SUMS} WHERE {_PLACE} AND start_ms = ? AND event_type = ?"

_HAS_MANY_TYPES = f"SELECT count(*) >= {MAX_TYPES} FROM counters WHERE {_PLACE} AND start_ms = ?"

_BEGIN = """
    INSERT INTO counters (tenant_id, inbox, span, start_ms, event_type) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING"""

_FORGET = f"DELETE FROM counters WHERE {_PLACE} AND start_ms < ?"

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
    changed: Iterable[Row],
    counts: Counts,
    undelivered: int,
) -> None:
    """The same has happened to all of them; each row holds an event's type."""
    changes = CountChanges()
    for (event_type,), number in Counter(changed).items():
        changes.add(inbox, event_type, counts.times(number), undelivered * number)
    count(connection, tenant_id, at_ms, changes)


def count_gone(connection: apsw.Connection, deleted: Iterable[Row]) -> None:
    """Rows that begin with tenant, inbox and status, of events that were deleted."""
    fewer = Counter((tenant_id, inbox) for tenant_id, inbox, status, *_ in deleted if status == Status.UNDELIVERED)
    for whose, number in fewer.items():
        connection.execute(_ADD_UNDELIVERED, (*whose, -number))


def add(connection: apsw.Connection, place: tuple[str, str, Span, int], event_type: str | None, counts: Counts) -> None:
    its_type = event_type or ""
    connection.execute(_ADD, (*counts, *place, its_type))
    if connection.changes() == 0:
        *whose, span, start_ms = place
        connection.execute(_FORGET, (*whose, span, start_ms - span.kept_ms))
        if connection.execute(_HAS_MANY_TYPES, place).fetchone() == (True,):
            its_type = OTHER_TYPES
        connection.execute(_BEGIN, (*place, its_type))
        connection.execute(_ADD, (*counts, *place, its_type))
