"""A backup in the place of the database, which is kept beside it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from inbox.errors import BackupFailed, StoreUnavailable
from inbox.store.sqlite.backup import OnProgress, whole
from inbox.store.sqlite.companions import JOURNAL, LOG, behind_links, beside, refuse_to_replace
from inbox.store.sqlite.migrations import migrate
from inbox.store.sqlite.placing import folder_to_sync, sync, workshop
from inbox.store.sqlite.replacing import alone, give, replace

_CHUNK_BYTES = 4 * 1024 * 1024
# Where SQLite's file format says whether a database has a log, and how.
_FORMAT_AT, _WITH_LOG = 18, b"\x02\x02"


def restore(path: Path, file: Path, on_progress: OnProgress) -> Path | None:
    """Puts a copy of the file there, brought to this release's schema. Where what was there is kept, if anything was.

    Up to its last moment nothing has changed. The file itself is only read.
    """
    path, file = behind_links(path), behind_links(file)
    if path.exists() and path.samefile(file):
        raise BackupFailed(f"{file} is the store itself.")
    refuse_to_replace(path)
    try:
        _refuse_in_use(path)
        with (
            _there(path.parent),
            workshop(path.parent, "partial-restore-") as unfinished,
            folder_to_sync(path.parent) as folder,
        ):
            copy = unfinished / "copy.db"
            _fetch(file, copy, on_progress)
            with whole(copy) as connection:
                migrate(connection)
            sync(copy)
            return replace(path, copy, folder)
    except (apsw.Error, OSError, StoreUnavailable) as error:
        raise BackupFailed(f"{file} was not restored: {error}") from error


@contextmanager
def _there(folder: Path) -> Iterator[None]:
    """Made where it is missing, and taken away again where that was for nothing."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        for each in reversed(missing):
            each.mkdir(exist_ok=True)
            give(each, each.parent)
        yield
    except BaseException:
        with suppress(OSError):
            for each in missing:
                each.rmdir()
        raise


def _fetch(file: Path, copy: Path, on_progress: OnProgress) -> None:
    """With its log or journal, where it has one: a copy that was made without `inbox backup` may need them."""
    copy.touch(mode=0o600)
    # On a disk that cannot be written nobody is kept out.
    opened = alone(file) if os.access(file, os.W_OK) else file.open("rb")
    with opened as source, copy.open("wb") as target:
        done, total = 0, os.fstat(source.fileno()).st_size
        while chunk := source.read(_CHUNK_BYTES):
            target.write(chunk)
            done += len(chunk)
            on_progress(done, total)
        # SQLite would write any log into any file, and one beside a file without a log is another's.
        has_log = os.pread(source.fileno(), len(_WITH_LOG), _FORMAT_AT) == _WITH_LOG
        for suffix in (LOG, JOURNAL) if has_log else (JOURNAL,):
            if (companion := beside(file, suffix)).exists():
                shutil.copyfile(companion, beside(copy, suffix))


def _refuse_in_use(path: Path) -> None:
    """Before much is copied; what counts is the look just before it is replaced."""
    if path.exists():
        with alone(path):
            pass
