"""A copy of the database while it is in use: one file, which is whole or not there."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from inbox.errors import BackupFailed, StoreUnavailable
from inbox.stop_signals import too_late_to_stop
from inbox.store.sqlite.companions import COMPANIONS, behind_links, beside
from inbox.store.sqlite.database import refuse_empty
from inbox.store.sqlite.migrations import check_ours
from inbox.store.sqlite.placing import folder_to_sync, give_name, refuse_to_overwrite, sync, sync_after, workshop

OnProgress = Callable[[int, int], object]
"""Hears how much is done, and of how much."""

_PAGES_A_STEP = 1_000
_LOCK_WAIT_MS = 5_000
_INSTRUCTIONS_BETWEEN_LOOKS = 100_000


def back_up(path: Path, file: Path, on_progress: OnProgress) -> None:
    """Copies the database as it is at this moment into a new file, readable by its owner only and synced to disk."""
    store = behind_links(path)
    if behind_links(file) in (store, *(beside(store, each) for each in COMPANIONS)):
        raise BackupFailed(f"{file} is the store itself, or belongs to it: give the backup another name.")
    refuse_to_overwrite(file)
    try:
        with workshop(file.parent, "partial-backup-") as unfinished, folder_to_sync(file.parent) as folder:
            copy = unfinished / "copy.db"
            copy.touch(mode=0o600)
            _copy(store, copy, on_progress)
            with whole(copy):
                pass
            sync(copy)
            too_late_to_stop()
            give_name(copy, file)
            sync_after(f"{file} is made", folder)
    except (apsw.Error, OSError, StoreUnavailable) as error:
        raise BackupFailed(f"No backup of {path} was made: {error}") from error


@contextmanager
def whole(path: Path) -> Iterator[apsw.Connection]:
    """A file that nobody else uses, without a log beside it, once it has proved to be a sound database of ours."""
    with closing(_connect(path)) as connection:
        # Ctrl-C is heard only where Python runs, and a check of many gigabytes takes minutes.
        connection.set_progress_handler(lambda: False, _INSTRUCTIONS_BETWEEN_LOOKS)
        connection.pragma("journal_mode", "delete")
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone() or ("nothing",)
        if found != "ok":
            raise apsw.CorruptError(f"damaged ({found})")
        check_ours(connection)
        yield connection


def _copy(store: Path, copy: Path, on_progress: OnProgress) -> None:
    refuse_empty(store)
    with closing(_connect(store)) as source, closing(_connect(copy)) as target:
        # It is synced when it is whole; until then nobody needs it after a crash.
        target.pragma("journal_mode", "off")
        target.pragma("synchronous", "off")
        # One snapshot from the first page to the last, which holds up no writer. Without it each commit of another
        # process would make the copy begin anew, and under steady writing it would never end.
        source.execute("BEGIN")
        source.pragma("user_version")
        backup = target.backup("main", source, "main")
        try:
            while not backup.done:
                backup.step(_PAGES_A_STEP)
                on_progress(backup.page_count - backup.remaining, backup.page_count)
        finally:
            # After a step that failed it says why, which the step does not know.
            backup.finish()


def _connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(_LOCK_WAIT_MS)
    return connection
