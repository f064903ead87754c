"""Backup of a database that is in use, and restore of one that is not.

Both write a copy in a folder of their own, check and sync it, and give it its name in a last step. Until then nothing
has changed. From then on stop signals are blocked, so that a command that is done reports it.
"""

import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import apsw

from inbox.errors import BackupFailed, StoreUnavailable
from inbox.stop_signals import block_stop_signals
from inbox.store.sqlite.files import (
    COMPANIONS,
    JOURNAL,
    SHARED_MEMORY,
    WAL,
    beside,
    real_path,
    refuse_empty,
    refuse_leftovers,
    unavailable,
)
from inbox.store.sqlite.migrations import is_ours, migrate

OnProgress = Callable[[int, int], object]
"""Called with the copied and the total number of pages or bytes."""

_PAGES_PER_STEP = 1_000
_LOCK_WAIT_MS = 5_000
_INSTRUCTIONS_BETWEEN_SIGNAL_CHECKS = 100_000
_CHUNK_BYTES = 4 * 1024 * 1024
# From SQLite's file format: the bytes that mark a database with a write-ahead log, and those that every open
# connection locks.
_FORMAT_OFFSET, _WAL_FORMAT = 18, b"\x02\x02"
_SHARED_LOCK_OFFSET, _SHARED_LOCK_BYTES = 0x40000002, 510


def back_up(path: Path, file: Path, on_progress: OnProgress) -> None:
    """Copies the database into a new file. Raises BackupFailed."""
    path = real_path(path)
    if real_path(file) in (path, *(beside(path, suffix) for suffix in COMPANIONS)):
        raise BackupFailed(f"{file} is the store itself, or belongs to it. Give the backup another name.")
    _refuse_existing(file)
    try:
        with _work_folder(file.parent, "partial-backup-") as folder:
            copy = folder / "copy.db"
            copy.touch(mode=0o600)
            _copy_database(path, copy, on_progress)
            if not _finish(copy, upgrade=False):
                raise BackupFailed(f"{path} is not a database of Polling Inbox. Check INBOX_STORE.")
            _place(copy, file)
    except OSError as error:
        raise BackupFailed(f"{file} cannot be written: {error.strerror}.") from error
    except apsw.FullError as error:
        raise BackupFailed(str(unavailable(file, error))) from error
    except apsw.IOError as error:
        # It may be a limit of the new file as well as a failing disk of the store.
        raise BackupFailed(f"{path} cannot be copied to {file}: {error}.") from error
    except apsw.Error as error:
        raise BackupFailed(str(unavailable(path, error))) from error
    except StoreUnavailable as error:
        raise BackupFailed(str(error)) from error


def restore(path: Path, file: Path, on_progress: OnProgress) -> Path | None:
    """Replaces the database by a copy of the file, migrated to this release's schema.

    Returns where the previous database is kept, None if there was none. Raises BackupFailed, and StoreUnavailable if
    only companions are left of the previous database.
    """
    path, file = real_path(path), real_path(file)
    replaces = path.exists()
    if replaces and path.samefile(file):
        raise BackupFailed(f"{file} is the store itself.")
    refuse_leftovers(path)
    try:
        with (
            _locked(path) if replaces else nullcontext(),
            _work_folder(next(each for each in path.parents if each.exists()), "partial-restore-") as folder,
        ):
            copy = folder / "copy.db"
            _copy_files(file, copy, on_progress)
            if not _finish(copy, upgrade=True):
                raise BackupFailed(f"{file} is not a backup of Polling Inbox.")
            if replaces:
                return _replace(path, copy)
            _create_folder(path.parent)
            _copy_owner(path.parent, copy)
            _place(copy, path)
            return None
    except apsw.NotADBError as error:
        raise BackupFailed(f"{file} is not a backup of Polling Inbox.") from error
    except apsw.CorruptError as error:
        raise BackupFailed(f"{file} is damaged or incomplete. Nothing was changed.") from error
    except OSError as error:
        raise BackupFailed(f"{path} cannot be restored from {file}: {error.strerror}.") from error
    except apsw.FullError as error:
        raise BackupFailed(str(unavailable(path, error))) from error
    except apsw.Error as error:
        raise BackupFailed(f"{file} cannot be restored: {error}.") from error
    except StoreUnavailable as error:
        raise BackupFailed(f"{file} cannot be restored. {error}") from error


@contextmanager
def _work_folder(parent: Path, prefix: str) -> Iterator[Path]:
    # Named before it is made, so that a stop signal in between leaves nothing.
    folder = parent / f"{prefix}{secrets.token_hex(8)}"
    try:
        try:
            folder.mkdir(mode=0o700)
        except FileNotFoundError as error:
            raise BackupFailed(f"The folder {parent} does not exist.") from error
        except OSError as error:
            raise BackupFailed(f"The folder {parent} cannot be written: {error.strerror}.") from error
        # A disk that cannot do this is refused now and not after the last step.
        _sync(parent)
        yield folder
    finally:
        block_stop_signals()
        shutil.rmtree(folder, ignore_errors=True)


def _copy_database(path: Path, copy: Path, on_progress: OnProgress) -> None:
    refuse_empty(path)
    with closing(_connect(path)) as source, closing(_connect(copy)) as target:
        target.pragma("journal_mode", "off")
        target.pragma("synchronous", "off")
        # One snapshot for all pages, which delays no writer. Without it, each commit of another process would make the
        # copy start over, and it might never end.
        source.execute("BEGIN")
        source.pragma("user_version")
        backup = target.backup("main", source, "main")
        try:
            while not backup.done:
                backup.step(_PAGES_PER_STEP)
                on_progress(backup.page_count - backup.remaining, backup.page_count)
        finally:
            # Raises the cause of a step that failed.
            backup.finish()


def _copy_files(file: Path, copy: Path, on_progress: OnProgress) -> None:
    """Copies a database that may have a log or a journal, because it was not made by `back_up`."""
    copy.touch(mode=0o600)
    with _locked(file) if os.access(file, os.W_OK) else file.open("rb") as source, copy.open("wb") as target:
        done, total = 0, os.fstat(source.fileno()).st_size
        while chunk := source.read(_CHUNK_BYTES):
            target.write(chunk)
            done += len(chunk)
            on_progress(done, total)
        # SQLite would write any log into any file, and one beside a database without a log belongs to another.
        has_wal = os.pread(source.fileno(), len(_WAL_FORMAT), _FORMAT_OFFSET) == _WAL_FORMAT
        for suffix in (WAL, JOURNAL) if has_wal else (JOURNAL,):
            if beside(file, suffix).exists():
                shutil.copyfile(beside(file, suffix), beside(copy, suffix))


def _finish(copy: Path, *, upgrade: bool) -> bool:
    """Checks, migrates (with `upgrade`) and syncs the copy, without a log. Returns False if it is not ours."""
    with closing(_connect(copy)) as connection:
        # Python handles signals only while it runs, and a check of many gigabytes takes minutes.
        connection.set_progress_handler(lambda: False, _INSTRUCTIONS_BETWEEN_SIGNAL_CHECKS)
        connection.pragma("journal_mode", "delete")
        (result,) = connection.execute("PRAGMA integrity_check(1)").fetchone() or ("no result",)
        if result != "ok":
            raise apsw.CorruptError(result)
        if not is_ours(connection):
            return False
        if upgrade:
            migrate(connection)
    _sync(copy)
    block_stop_signals()
    return True


def _connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(_LOCK_WAIT_MS)
    return connection


@contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    """Keeps every process from opening the database. Raises BackupFailed if one has it open."""
    # Without SQLite, which may be unable to open a damaged file.
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _SHARED_LOCK_BYTES, _SHARED_LOCK_OFFSET)
            # Another restore may have moved the file between opening and locking it.
            is_free = os.path.samestat(os.fstat(file.fileno()), path.stat())
        except (BlockingIOError, PermissionError):
            is_free = False
        if not is_free:
            raise BackupFailed(f"{path} is in use. Stop the service, and whatever else has it open, first.")
        yield file


def _replace(path: Path, copy: Path) -> Path:
    """Returns where the previous database is kept. If a step fails, all files are put back."""
    kept = beside(path, f".before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}")
    # While there is no database, this file keeps a process that starts from creating one. SQLite does not mind it.
    guard = beside(path, SHARED_MEMORY)
    guard.unlink(missing_ok=True)
    guard.touch(mode=0o600)
    for file in (guard, copy):
        _copy_owner(path, file)
        file.chmod(stat.S_IMODE(path.stat().st_mode))
    moved: list[tuple[Path, Path]] = []
    try:
        # The database first: without its log, SQLite would open it and miss the latest events.
        for suffix in ("", WAL, JOURNAL):
            if (file := beside(path, suffix)).exists():
                renamed = file.rename(beside(kept, suffix))
                moved.append((renamed, file))
        # Otherwise a power cut could leave the new database with the old log.
        _sync(path.parent)
        copy.rename(path)
    except BaseException:
        for new, old in reversed(moved):
            new.rename(old)
        guard.unlink()
        raise
    _sync(path.parent)
    return kept


def _place(copy: Path, file: Path) -> None:
    _refuse_existing(file)
    try:
        os.link(copy, file)
    except FileExistsError:
        raise
    except OSError:
        # The file system has no links. A file that was created this moment is overwritten there.
        copy.rename(file)
    _sync(file.parent)


def _refuse_existing(file: Path) -> None:
    for each in (file, *(beside(file, suffix) for suffix in COMPANIONS)):
        if os.path.lexists(each):
            raise BackupFailed(f"{each} already exists and is not overwritten.")


def _create_folder(folder: Path) -> None:
    if not folder.exists():
        _create_folder(folder.parent)
        folder.mkdir()
        _copy_owner(folder.parent, folder)
        _sync(folder.parent)


def _copy_owner(source: Path, target: Path) -> None:
    """Lets root restore for a service that runs as another user."""
    if os.geteuid() == 0:
        os.chown(target, source.stat().st_uid, source.stat().st_gid)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
