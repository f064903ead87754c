"""Disk space: allocated before each commit, reclaimed when the disk is full.

By itself, SQLite extends the database file only when a checkpoint copies the write-ahead log into it. On a full disk
that fails, the log can never start over, and soon not even a DELETE fits into it (tried on a disk of 24 MiB). So the
file is extended before the commit. A checkpoint then needs no space, and every write that does not extend the file
can reuse the log's.
"""

import ctypes
import errno
import os
from contextlib import suppress
from pathlib import Path

import apsw

from inbox.errors import StoreFull
from inbox.shared_integer import SharedInteger
from inbox.store.sqlite.files import WAL, beside

_CHUNK_BYTES = 262_144
# Without a limit the log keeps the largest size it ever had: one batch that does not fit would take all space left.
_MAX_LOG_BYTES = 8 * 1024 * 1024


class DiskSpace:
    """`needed_bytes` is the size of the largest write that failed for lack of space, 0 once there is space for it."""

    def __init__(self, path: Path, needed_bytes: SharedInteger) -> None:
        self._path = path
        self._needed_bytes = needed_bytes
        self._growth_bytes = 0

    def prepare(self, connection: apsw.Connection) -> None:
        """Sets up a connection that writes."""
        _control(connection, apsw.SQLITE_FCNTL_CHUNK_SIZE, ctypes.c_int(_CHUNK_BYTES))
        connection.pragma("journal_size_limit", _MAX_LOG_BYTES)

    def begin(self, connection: apsw.Connection) -> None:
        """Starts to measure a transaction."""
        self._growth_bytes = 0
        connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE, reset=True)

    def allocate(self, connection: apsw.Connection) -> None:
        """Extends the file to its size after the open transaction. Raises FullError if the disk is full."""
        size = ctypes.c_int64(connection.pragma("page_count") * connection.pragma("page_size"))
        growth_bytes = size.value - self._file_bytes()
        if growth_bytes <= 0:
            return
        try:
            _control(connection, apsw.SQLITE_FCNTL_SIZE_HINT, size)
        except apsw.IOError as error:
            cause = ctypes.c_int()
            _control(connection, apsw.SQLITE_FCNTL_LAST_ERRNO, cause)
            if cause.value != errno.ENOSPC:
                raise
            # SQLite extends the file to whole chunks. It is enough if the transaction fits.
            if self._file_bytes() < size.value:
                self._growth_bytes = growth_bytes
                raise apsw.FullError("database or disk is full") from error

    def reclaim(self, connection: apsw.Connection, writes: int) -> None:
        """After a FullError: lets the log start over, so that the next transaction reuses its space.

        Remembers how much each write of the group would have needed.
        """
        pages_written, _ = connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)
        group_bytes = max(pages_written * connection.pragma("page_size"), self._growth_bytes)
        self._needed_bytes.value = max(self._needed_bytes.value, group_bytes // writes + _CHUNK_BYTES)
        # Temporary files are often on the same disk. Large transactions write there what a rollback needs.
        connection.pragma("temp_store", "memory")
        # Not RESTART, which would hold the write lock until a backup that reads is done.
        with suppress(apsw.Error):
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def check(self, unused_bytes: int) -> None:
        """Raises StoreFull if a write has failed for lack of space and one of its size would fail again.

        `unused_bytes` is the size of the file's free pages.
        """
        needed = self._needed_bytes.value
        if not needed:
            return
        log = beside(self._path, WAL)
        log_bytes = log.stat().st_size if log.exists() else 0
        # A write needs its size in the file and once more in the log.
        missing = max(0, needed - unused_bytes) + max(0, needed - log_bytes)
        disk = os.statvfs(self._path.parent)
        # Root may also use the blocks that a file system reserves.
        free_blocks = disk.f_bavail if os.geteuid() else disk.f_bfree
        if missing > free_blocks * disk.f_frsize:
            raise StoreFull(f"The disk has no space for a write of {needed} bytes.")
        self._needed_bytes.value = 0

    def _file_bytes(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError as error:
            raise apsw.CantOpenError(error.strerror) from error


def _control(connection: apsw.Connection, operation: int, value: "ctypes._SimpleCData[int]") -> None:
    connection.file_control("main", operation, ctypes.addressof(value))
