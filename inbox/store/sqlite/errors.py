"""SQLite's errors, by what to do about them."""

import apsw

from inbox.errors import StoreFull, StoreUnavailable

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


def unavailable(error: Exception) -> StoreUnavailable:
    kind = StoreFull if isinstance(error, apsw.FullError) else StoreUnavailable
    return kind(f"The database is unavailable ({type(error).__name__}: {error}).")
