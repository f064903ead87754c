"""One database in the place of another, which nobody may have open and which is kept."""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from inbox.errors import BackupFailed
from inbox.stop_signals import too_late_to_stop
from inbox.store.sqlite.companions import JOURNAL, LOG, beside
from inbox.store.sqlite.placing import give_name, sync_after

# Where every open connection to a database with a log holds a lock, as SQLite's file format has it.
_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510


def replace(path: Path, copy: Path, folder: int) -> Path | None:
    """Where what was there is kept, if anything was. Where it fails, everything is in its place again."""
    if not path.exists():
        give(copy, path.parent)
        too_late_to_stop()
        give_name(copy, path)
        sync_after(f"{path} is restored", folder)
        return None
    _make_alike(copy, path)
    kept = beside(path, f".before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}")
    with alone(path):
        too_late_to_stop()
        with _guarded(path), _moved(path, kept):
            # Or a power cut could leave the new file beside the old log.
            os.fsync(folder)
            copy.rename(path)
        sync_after(f"{path} is restored and what was there is kept as {kept}", folder)
    return kept


@contextmanager
def alone(path: Path) -> Iterator[BinaryIO]:
    """The file, while nobody else has it open as a database."""
    # SQLite is not asked: the file may be damaged, which is why there is a backup.
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _SHARED_SIZE, _SHARED_FIRST)
            # Another restore may have put it aside before it was locked.
            is_free = os.path.samestat(os.fstat(file.fileno()), path.stat())
        except (BlockingIOError, PermissionError):
            is_free = False
        if not is_free:
            raise BackupFailed(f"{path} is in use: stop the service, and whatever else has it open, first.")
        yield file


@contextmanager
def _guarded(path: Path) -> Iterator[None]:
    """While there is no file, its -shm keeps whoever starts from making a new one. SQLite will not mind it."""
    guard = beside(path, "-shm")
    # A new one: nothing in the old one is needed, and whom that belongs to may not be whom the store belongs to.
    guard.unlink(missing_ok=True)
    guard.touch(mode=0o600)
    _make_alike(guard, path)
    try:
        yield
    except BaseException:
        if path.exists():
            guard.unlink()
        raise


@contextmanager
def _moved(path: Path, kept: Path) -> Iterator[None]:
    moved: list[tuple[Path, Path]] = []
    try:
        for suffix in ("", LOG, JOURNAL):
            if (old := beside(path, suffix)).exists():
                new = old.rename(beside(kept, suffix))
                moved.append((new, old))
        yield
    except BaseException:
        # The file comes last: without its log it would be taken for all that there is.
        for new, old in reversed(moved):
            new.rename(old)
        raise


def give(file: Path, like: Path) -> None:
    """To whom the other belongs: the administrator restores for a service that runs as somebody else."""
    if os.geteuid() == 0:
        owner = like.stat()
        os.chown(file, owner.st_uid, owner.st_gid)


def _make_alike(file: Path, like: Path) -> None:
    give(file, like)
    file.chmod(stat.S_IMODE(like.stat().st_mode))
