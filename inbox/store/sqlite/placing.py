"""How a file that is whole gets its name: in one step, over nothing that is there, and to outlast a power cut."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inbox.errors import BackupFailed
from inbox.stop_signals import too_late_to_stop
from inbox.store.sqlite.companions import COMPANIONS, beside


@contextmanager
def workshop(folder: Path, prefix: str) -> Iterator[Path]:
    """A folder for what is unfinished, on the disk where it shall be. From its end on no stop is heard."""
    if not folder.is_dir():
        raise BackupFailed(f"There is no folder {folder}.")
    # Named before it is made: however soon a stop comes, it is known what has to be taken away.
    made = folder / f"{prefix}{secrets.token_hex(8)}"
    try:
        try:
            _make(made)
            yield made
        finally:
            too_late_to_stop()
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise BackupFailed(f"The folder {folder.parent} cannot be written: {error.strerror}.") from error


@contextmanager
def folder_to_sync(folder: Path) -> Iterator[int]:
    """Its descriptor. One that cannot be synced is refused, before anything in it gets a name."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


def sync_after(done: str, folder: int) -> None:
    try:
        os.fsync(folder)
    except OSError as error:
        raise BackupFailed(f"{done}, but a power cut may undo it: the folder was not synced ({error}).") from error


def sync(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def give_name(copy: Path, file: Path) -> None:
    refuse_to_overwrite(file)
    try:
        os.link(copy, file)
    except FileExistsError:
        raise _is_there(file) from None
    except OSError:
        # Not every file system has links. A name that comes up at this very moment is overwritten there.
        copy.rename(file)


def refuse_to_overwrite(file: Path) -> None:
    """Nor is it put beside what SQLite would take for a part of it."""
    for suffix in ("", *COMPANIONS):
        if os.path.lexists(there := beside(file, suffix)):
            raise _is_there(there)


def _is_there(file: Path) -> BackupFailed:
    return BackupFailed(f"{file} is there already, and is not overwritten.")
