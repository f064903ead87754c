"""Inboxes in which a release or a replay has made events undelivered again.

Unlike new events, these have old numbers, so a watch cannot find them behind the last number it knows.
"""

from collections.abc import Iterable

import apsw

# More than are written between two looks of a watch. What a watch misses, it finds within a second by a full look.
_KEPT_ROWS = 1_000

_INSERT = "INSERT INTO reopened_inboxes (tenant_id, inbox) VALUES (?, ?)"

_TRIM = f"DELETE FROM reopened_inboxes WHERE number <= (SELECT max(number) FROM reopened_inboxes) - {_KEPT_ROWS}"


def note_reopened(connection: apsw.Connection, tenant_id: str, inboxes: Iterable[str]) -> None:
    for inbox in inboxes:
        connection.execute(_INSERT, (tenant_id, inbox))
        connection.execute(_TRIM)
