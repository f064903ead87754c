"""The schema version of the tables, so that a rolling upgrade never writes items that an older process cannot read.

Version 1 is the format of release 0.1.0, which stores no version. Operators start the new release in every process and
then run `inbox init`, which raises the version. From then on processes write the new formats. Each release supports its
own version and the one before.
"""

import threading
from time import monotonic

from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import layout, writes
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import TENANTS, number

SCHEMA_VERSION = 2
"""The version that this release writes after `inbox init`."""

_PREVIOUS = SCHEMA_VERSION - 1
_WITHOUT_ITEM = 1
_CACHE_SECONDS = 60


class SchemaVersion:
    """The version of the tables. Thread-safe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._mutex = threading.Lock()
        self._version = _PREVIOUS
        self._cached_until = 0.0

    def get(self) -> int:
        """Returns the version: SCHEMA_VERSION, or the one before until `inbox init` was run.

        SCHEMA_VERSION is cached for good, the version before for a minute. Raises StoreUnavailable for any other.
        """
        with self._mutex:
            if self._version == SCHEMA_VERSION or monotonic() < self._cached_until:
                return self._version
        version = self._read()
        with self._mutex:
            # Another thread may have read a newer version meanwhile.
            self._version = max(self._version, version)
            self._cached_until = monotonic() + _CACHE_SECONDS
            return self._version

    def write(self, version: int) -> None:
        """Stores the version, unless the tables already have this version or a later one."""
        table, item = self._connection.table(TENANTS), {**layout.SCHEMA_KEY, "version": number(version)}
        is_later = "attribute_not_exists(version) OR version < :version"
        self._connection.try_write(writes.put(table, item, is_later, {":version": number(version)}))
        with self._mutex:
            self._cached_until = 0.0

    def _read(self) -> int:
        item = self._connection.get(TENANTS, layout.SCHEMA_KEY)
        version = _WITHOUT_ITEM if item is None else layout.number_in(item, "version")
        if version not in (_PREVIOUS, SCHEMA_VERSION):
            raise StoreUnavailable(
                f"The DynamoDB tables have schema version {version}; this release supports {_PREVIOUS} and"
                f" {SCHEMA_VERSION}. Run the release that upgraded the tables, or check INBOX_TABLE_PREFIX."
            )
        return version
