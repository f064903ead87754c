"""The embedded store: one SQLite file, for one machine."""

from pathlib import Path

from inbox.clock import Clock
from inbox.shared_integer import SharedInteger
from inbox.store.sqlite.arrivals import SQLiteArrivalWatch
from inbox.store.sqlite.counters import SQLiteCounters
from inbox.store.sqlite.database import Database
from inbox.store.sqlite.events import SQLiteEvents
from inbox.store.sqlite.inboxes import SQLiteInboxes
from inbox.store.sqlite.keys import SQLiteKeys
from inbox.store.sqlite.tenants import SQLiteTenants


class SQLiteStore:
    """Creates the file if it is missing, and migrates one of an earlier release unless `upgrade` is False.

    Without `create` it does neither. Then a missing file, or one of an earlier release, raises StoreUnavailable at the
    first use. The processes of a service share `clock` and `needed_disk_bytes`.
    """

    def __init__(
        self,
        path: Path,
        max_deliveries: int,
        *,
        create: bool = True,
        upgrade: bool = True,
        clock: Clock | None = None,
        needed_disk_bytes: SharedInteger | None = None,
    ) -> None:
        self._database = Database(path, needed_disk_bytes)
        if create:
            self._database.create(upgrade=upgrade)
        self.events = SQLiteEvents(self._database, max_deliveries)
        self.counters = SQLiteCounters(self._database, self.events.expire_leases)
        self.inboxes = SQLiteInboxes(self._database)
        self.keys = SQLiteKeys(self._database)
        self.tenants = SQLiteTenants(self._database)
        self.now_ms = (clock or Clock()).now_ms
        self.check = self._database.check
        self.set_batch_listener = self._database.set_batch_listener
        self.close = self._database.close

    def init(self) -> None:
        """Does nothing: the constructor has done it."""

    def watch_arrivals(self) -> SQLiteArrivalWatch:
        return SQLiteArrivalWatch(self._database)
