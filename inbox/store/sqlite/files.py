"""The database file, the files that SQLite keeps beside it, and what SQLite's errors mean."""

import os
from pathlib import Path

import apsw

from inbox.errors import StoreFull, StoreUnavailable

WAL, SHARED_MEMORY, JOURNAL = "-wal", "-shm", "-journal"
COMPANIONS = (WAL, SHARED_MEMORY, JOURNAL)
"""The files beside the database. They are a part of it."""

# The connection cannot be used any more. SQLite may have opened it read-only, because the file allowed no more, and it
# would stay read-only.
BROKEN_CONNECTION = (
    apsw.CantOpenError,
    apsw.IOError,
    apsw.NotADBError,
    apsw.PermissionsError,
    apsw.ReadOnlyError,
)

# A later try may succeed. A damaged file does not repair itself, but the request was valid, and succeeds once the file
# is restored.
TEMPORARY = (
    *BROKEN_CONNECTION,
    apsw.BusyError,
    apsw.CorruptError,
    apsw.FullError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.ProtocolError,
)


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def real_path(path: Path) -> Path:
    """Follows symbolic links, as SQLite does: the companions are beside the file itself."""
    # Path.resolve raises an error for a loop of links up to Python 3.12.
    return Path(os.path.realpath(path))


def refuse_empty(path: Path) -> None:
    # SQLite takes the log beside an empty file for a leftover and deletes it, with all events in it.
    try:
        size = path.stat().st_size
    except OSError as error:
        raise apsw.CantOpenError(error.strerror) from error
    if size == 0:
        raise apsw.NotADBError("the file is empty")


def refuse_leftovers(path: Path) -> None:
    """Raises StoreUnavailable if only companions are left of a database: they may hold events."""
    # Companions first: another process that is creating a database creates the file before its journal.
    left = [beside(path, suffix).name for suffix in COMPANIONS if beside(path, suffix).exists()]
    is_being_created = left == [beside(path, JOURNAL).name]
    if left and not (path.exists() and (path.stat().st_size or is_being_created)):
        raise StoreUnavailable(
            f"{path} is missing or empty, and {' and '.join(left)} beside it may hold events. "
            "Put the file back, or move these files away to start with an empty store."
        )


def unavailable(error: Exception) -> StoreUnavailable:
    kind = StoreFull if isinstance(error, apsw.FullError) else StoreUnavailable
    return kind(f"The database is unavailable ({type(error).__name__}: {error}).")
