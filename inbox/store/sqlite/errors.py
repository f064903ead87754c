"""Which of SQLite's errors mean that trying again may work."""

import apsw

from inbox.errors import StoreFull, StoreUnavailable

# After these the connection is of no more use: it may be one that SQLite opened for reading alone, because that was all
# that the file allowed, and it would stay so for good.
BROKEN = (
    apsw.CantOpenError,
    apsw.IOError,
    apsw.NotADBError,
    apsw.PermissionsError,
    apsw.ReadOnlyError,
)

# A damaged file gets no better by itself. But it is not the request that was wrong, and it is welcome once there is a
# sound file again.
PASSING = (
    *BROKEN,
    apsw.BusyError,
    apsw.CorruptError,
    apsw.FullError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.ProtocolError,
)


def unavailable(error: Exception) -> StoreUnavailable:
    kind = StoreFull if isinstance(error, apsw.FullError) else StoreUnavailable
    return kind(f"The database did not answer ({type(error).__name__}: {error}).")
