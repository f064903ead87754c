"""The embedded store: one SQLite file, for one machine."""

from pathlib import Path

from inbox.store.sqlite.database import Database
from inbox.store.sqlite.events import SQLiteEvents
from inbox.store.sqlite.inboxes import SQLiteInboxes
from inbox.store.sqlite.keys import SQLiteKeys
from inbox.store.sqlite.tenants import SQLiteTenants


class SQLiteStore:
    """Made, and brought to this release's schema, by opening it."""

    def __init__(self, path: Path, max_deliveries: int) -> None:
        self._database = Database(path)
        self.events = SQLiteEvents(self._database, max_deliveries)
        self.inboxes = SQLiteInboxes(self._database)
        self.keys = SQLiteKeys(self._database)
        self.tenants = SQLiteTenants(self._database)

    def init(self) -> None:
        """Opening it has done so."""

    def check(self) -> None:
        # An empty transaction takes the write lock and writes nothing.
        self._database.write(lambda _connection: None)

    def close(self) -> None:
        self._database.close()
