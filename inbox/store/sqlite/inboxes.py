"""Inboxes in SQLite."""

import json
from collections.abc import Iterable

import apsw

from inbox.domain.inboxes import MAX_INBOXES, Inbox
from inbox.errors import InboxClosing, InboxExists, TooManyInboxes
from inbox.store.sqlite.database import Database, Row

OPEN = "SELECT name, event_types, created_at_ms FROM inboxes WHERE tenant_id = ? AND NOT closing"

_ALL = f"{OPEN} ORDER BY name"

_GET = f"{OPEN} AND name = ?"

_IS_CLOSING = "SELECT closing FROM inboxes WHERE tenant_id = ? AND name = ?"

_INSERT = "INSERT INTO inboxes (event_types, tenant_id, name, created_at_ms) VALUES (?, ?, ?, ?)"

_UPDATE = "UPDATE inboxes SET event_types = ? WHERE tenant_id = ? AND name = ?"

_CLOSE = "UPDATE inboxes SET closing = 1 WHERE tenant_id = ? AND name = ?"

_ENABLE_DEFAULT = "DELETE FROM disabled_default_inboxes WHERE tenant_id = ?"

_DISABLE_DEFAULT = "INSERT INTO disabled_default_inboxes (tenant_id) VALUES (?) ON CONFLICT DO NOTHING"

_IS_DEFAULT_ENABLED = "SELECT NOT EXISTS (SELECT 1 FROM disabled_default_inboxes WHERE tenant_id = ?)"

_DELETE_COPIES = """
    DELETE FROM events WHERE seq IN (
        SELECT seq FROM events INDEXED BY events_by_time WHERE tenant_id = ? AND inbox = ? LIMIT ?)"""

_DELETE = (
    "DELETE FROM attempts WHERE tenant_id = ? AND inbox = ?",
    "DELETE FROM counters WHERE tenant_id = ? AND inbox = ?",
    "DELETE FROM backlog WHERE tenant_id = ? AND inbox = ?",
    "DELETE FROM inboxes WHERE tenant_id = ? AND name = ?",
)

# More rows than are written between two checks of a watch. It finds an inbox that it missed within a second.
_MAX_REOPENED = 1_000

_INSERT_REOPENED = "INSERT INTO reopened_inboxes (tenant_id, inbox) VALUES (?, ?)"

_DELETE_OLD_REOPENED = f"""
    DELETE FROM reopened_inboxes WHERE number <= (SELECT max(number) FROM reopened_inboxes) - {_MAX_REOPENED}"""


class SQLiteInboxes:
    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, tenant_id: str, inbox: Inbox, *, replace: bool = True) -> bool:
        event_types = None if inbox.event_types is None else json.dumps(inbox.event_types)

        def transaction(connection: apsw.Connection) -> bool:
            closing = connection.execute(_IS_CLOSING, (tenant_id, inbox.name)).fetchone()
            if closing == (True,):
                raise InboxClosing(inbox.name)
            if closing is not None:
                if not replace:
                    raise InboxExists(inbox.name)
                connection.execute(_UPDATE, (event_types, tenant_id, inbox.name))
                return False
            if len(open_inboxes(connection, tenant_id)) >= MAX_INBOXES:
                raise TooManyInboxes(MAX_INBOXES)
            connection.execute(_INSERT, (event_types, tenant_id, inbox.name, inbox.created_at_ms))
            return True

        return self._database.write(transaction)

    def get(self, tenant_id: str, name: str) -> Inbox | None:
        rows = self._database.read(_GET, (tenant_id, name))
        return _inbox(rows[0]) if rows else None

    def all(self, tenant_id: str) -> list[Inbox]:
        return [_inbox(row) for row in self._database.read(_ALL, (tenant_id,))]

    def close(self, tenant_id: str, name: str) -> bool:
        def transaction(connection: apsw.Connection) -> bool:
            connection.execute(_CLOSE, (tenant_id, name))
            return connection.changes() > 0

        return self._database.write(transaction)

    def delete_copies(self, tenant_id: str, name: str, limit: int) -> int:
        def delete_rows(limit: int, connection: apsw.Connection) -> int:
            if connection.execute(_IS_CLOSING, (tenant_id, name)).fetchone() != (True,):
                return 0
            connection.execute(_DELETE_COPIES, (tenant_id, name, limit))
            deleted = connection.changes()
            if deleted < limit:
                for delete in _DELETE:
                    connection.execute(delete, (tenant_id, name))
            return deleted

        return self._database.delete(delete_rows, limit)

    def set_default_enabled(self, tenant_id: str, enabled: bool) -> None:
        statement = _ENABLE_DEFAULT if enabled else _DISABLE_DEFAULT
        self._database.write(lambda connection: connection.execute(statement, (tenant_id,)))

    def is_default_enabled(self, tenant_id: str) -> bool:
        return bool(self._database.read(_IS_DEFAULT_ENABLED, (tenant_id,))[0][0])


def open_inboxes(connection: apsw.Connection, tenant_id: str) -> list[Inbox]:
    return [_inbox(row) for row in connection.execute(OPEN, (tenant_id,))]


def is_default_enabled(connection: apsw.Connection, tenant_id: str) -> bool:
    return connection.execute(_IS_DEFAULT_ENABLED, (tenant_id,)).fetchone() == (True,)


def _inbox(row: Row) -> Inbox:
    name, event_types, created_at_ms = row
    return Inbox(name, None if event_types is None else tuple(json.loads(event_types)), created_at_ms)


def note_reopened(connection: apsw.Connection, tenant_id: str, inboxes: Iterable[str]) -> None:
    """Records that a release or a replay has made events undelivered again.

    Such events have old numbers, so an ArrivalWatch cannot find them behind the last number it has read.
    """
    for inbox in inboxes:
        connection.execute(_INSERT_REOPENED, (tenant_id, inbox))
        connection.execute(_DELETE_OLD_REOPENED)
