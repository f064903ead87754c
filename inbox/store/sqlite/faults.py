"""Which of SQLite's errors mean that trying again may work."""

import apsw

from inbox.errors import StoreUnavailable

PASSING = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.FullError,
    apsw.IOError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.PermissionsError,
    apsw.ReadOnlyError,
)


def unavailable(error: Exception) -> StoreUnavailable:
    return StoreUnavailable(f"The database did not answer ({type(error).__name__}).")
