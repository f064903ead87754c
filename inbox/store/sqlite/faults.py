"""Which of SQLite's errors mean that trying again may work."""

import apsw

from inbox.errors import StoreUnavailable

_PASSING = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.FullError,
    apsw.IOError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.PermissionsError,
    apsw.ReadOnlyError,
)


def as_store_fault(error: Exception) -> Exception:
    """A StoreUnavailable of its own for each who asks; any other error is a bug and stays what it is."""
    if isinstance(error, _PASSING):
        return StoreUnavailable(f"The database did not answer ({type(error).__name__}).")
    return error
