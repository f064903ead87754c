"""The folder in which the worker processes of a service store their metrics, each in its own files."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prometheus_client.multiprocess import mark_process_dead

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
_PREFIX = "inbox-metrics-"
# Twice the size of a process's files with every series.
_MIN_FREE_BYTES = 1024 * 1024


@contextmanager
def create_metrics_folder() -> Iterator[Path]:
    """Yields a new private folder, in memory if possible. The process that created it removes it."""
    parent = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    _remove_abandoned_folders(parent)
    hidden = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=parent))
    # Every forked process inherits the lock. Renamed after locking: a service that starts now must not remove it.
    lock = os.open(hidden, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    folder, creator = hidden.rename(parent / hidden.name.removeprefix(".")), os.getpid()
    try:
        yield folder
    finally:
        # gunicorn's workers unwind this stack too.
        if os.getpid() == creator:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def has_room(folder: Path) -> bool:
    """Returns True if a process can count in the folder. On a full file system, SIGBUS would kill it."""
    return shutil.disk_usage(folder).free >= _MIN_FREE_BYTES


def remove_gauges(folder: Path, pid: int) -> None:
    """Removes the gauges of a worker process that has ended. Its counters stay."""
    mark_process_dead(pid, folder)


def _remove_abandoned_folders(parent: Path) -> None:
    """Removes the folders of services that were killed."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
