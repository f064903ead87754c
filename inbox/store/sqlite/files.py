"""The database file and the files that SQLite keeps beside it, which are a part of the database."""

import os
from pathlib import Path

import apsw

from inbox.errors import StoreUnavailable

WAL, SHARED_MEMORY, JOURNAL = "-wal", "-shm", "-journal"
COMPANIONS = (WAL, SHARED_MEMORY, JOURNAL)


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
