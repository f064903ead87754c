"""The embedded store: one SQLite file, for one machine."""

from collections.abc import Callable
from pathlib import Path

from inbox.clock import Clock
from inbox.store.shared_integer import SharedInteger
from inbox.store.sqlite.arrivals import SQLiteArrivals
from inbox.store.sqlite.counters import SQLiteCounters
from inbox.store.sqlite.database import Database
from inbox.store.sqlite.events import SQLiteEvents
from inbox.store.sqlite.inboxes import SQLiteInboxes
from inbox.store.sqlite.keys import SQLiteKeys
from inbox.store.sqlite.leases import Settling
from inbox.store.sqlite.tenants import SQLiteTenants


class SQLiteStore:
    """Opening creates the file, and migrates one of an earlier release unless `upgrade` is False.

    With `made` it does neither, and a file that is missing or of an earlier release fails at the first use. The
    processes of a service share `clock`, and `needed_disk_bytes`, so that `check` has the same result in all of them.
    """

    def __init__(
        self,
        path: Path,
        max_deliveries: int,
        *,
        made: bool = False,
        upgrade: bool = True,
        clock: Clock | None = None,
        needed_disk_bytes: SharedInteger | None = None,
    ) -> None:
        self._database = Database(path, needed_disk_bytes)
        if not made:
            self._database.make(upgrade=upgrade)
        settling = Settling(self._database, max_deliveries)
        self.events = SQLiteEvents(self._database, settling)
        self.counters = SQLiteCounters(self._database, settling)
        self.inboxes = SQLiteInboxes(self._database)
        self.keys = SQLiteKeys(self._database)
        self.tenants = SQLiteTenants(self._database)
        self.now_ms = (clock or Clock()).now_ms

    def init(self) -> None:
        """Opening it has done so."""

    def check(self) -> None:
        self._database.check()

    def set_batch_listener(self, on_batch: Callable[[int], object]) -> None:
        self._database.set_batch_listener(on_batch)

    def watch_arrivals(self) -> SQLiteArrivals:
        return SQLiteArrivals(self._database)

    def close(self) -> None:
        self._database.close()
