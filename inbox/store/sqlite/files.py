"""The database file, the files that SQLite keeps beside it, and what SQLite's errors mean."""

import os
from pathlib import Path

import apsw

from inbox.errors import StoreFull, StoreUnavailable

WAL, SHARED_MEMORY, JOURNAL = "-wal", "-shm", "-journal"
COMPANIONS = (WAL, SHARED_MEMORY, JOURNAL)
"""The files beside the database. They are a part of it."""

# The connection cannot be used any more. If the file was not writable when SQLite opened it, the connection would stay
# read-only.
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

_LOCKED = "is locked by another process."
_READ_ONLY = "cannot be written. Check the permissions of the file and its folder."
_PROBLEMS: dict[type[Exception], str] = {
    apsw.BusyError: _LOCKED,
    apsw.CorruptError: "is damaged. Restore a backup with `inbox restore`.",
    apsw.FullError: "cannot be written: the disk is full.",
    apsw.LockedError: _LOCKED,
    apsw.NoMemError: "cannot be used: the machine is out of memory.",
    apsw.NotADBError: "is not a SQLite database. Check INBOX_STORE, or restore a backup with `inbox restore`.",
    apsw.PermissionsError: _READ_ONLY,
    apsw.ProtocolError: _LOCKED,
    apsw.ReadOnlyError: _READ_ONLY,
}


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def unavailable(path: Path, error: Exception) -> StoreUnavailable:
    """Returns the error to raise for an error of SQLite or of the file system."""
    kind = StoreFull if isinstance(error, apsw.FullError) else StoreUnavailable
    return kind(f"{path} {_PROBLEMS.get(type(error)) or _opening_problem(path, error)}")


def _opening_problem(path: Path, error: Exception) -> str:
    try:
        path.stat()
    except FileNotFoundError:
        if not isinstance(error, OSError):
            return "does not exist. Check INBOX_STORE."
    except OSError as stat_error:
        error = stat_error
    if isinstance(error, OSError):
        return f"cannot be opened: {error.strerror}."
    if path.is_dir():
        return "is a folder. Check INBOX_STORE."
    # There are too many causes, from a failing disk to missing file descriptors. SQLite's text tells them apart.
    return f"cannot be used: {error}."


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
