"""Reads the events of a SQLite store from its file."""

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import apsw

from tests.torture.power_cut import PLAIN_DISK


class StoredEvent(NamedTuple):
    event_id: str
    status: str
    payload: str


def read_events(file: Path) -> list[StoredEvent]:
    """Returns all events, oldest first. Fails if the database is damaged."""
    # In the test of power cuts, the default VFS is the simulated disk.
    with closing(apsw.Connection(str(file), vfs=PLAIN_DISK)) as connection:
        assert connection.pragma("integrity_check") == "ok"
        rows = connection.execute("SELECT event_id, status, payload FROM events ORDER BY seq").fetchall()
    return [StoredEvent(*map(str, row)) for row in rows]
