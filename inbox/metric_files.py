"""The files in which the processes of a service count together: made before they are forked, and gone at its end.

Each process has files of its own, named after its number, and whoever is asked adds up all of them.
"""

import fcntl
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import mark_process_dead

from inbox.errors import SettingsError
from inbox.shared_numbers import NumberFile

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
"""Whose files never wait for a disk."""
_PREFIX = "inbox-metrics-"
_ENDED = "ended"
_ADDED_UP = ("counter", "histogram")


class MetricFiles:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def be_there(self) -> None:
        """Again, where somebody has tidied up: systemd empties the memory of a user who logs out."""
        self.folder.mkdir(mode=0o700, exist_ok=True)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """No file is put together with others meanwhile, so that nothing is seen twice or not at all."""
        with self._lock(fcntl.LOCK_SH):
            yield

    def keep_of_ended(self, living: Collection[int]) -> None:
        """Puts together what all processes but these have counted, so that files do not pile up with their restarts.

        Not while somebody reads: whoever supervises the processes must not wait. Then the next call does it.
        """
        ended = {process for file in self.folder.glob("*.db") if (process := _process_of(file)) not in living}
        for process in ended - {_ENDED}:
            mark_process_dead(process, self.folder)
        with suppress(BlockingIOError), self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB):
            for kind in _ADDED_UP:
                self._add_up(kind, [file for file in self.folder.glob(f"{kind}_*.db") if _process_of(file) in ended])

    def _add_up(self, kind: str, files: list[Path]) -> None:
        total = self.folder / f"{kind}_{_ENDED}.db"
        if set(files) <= {total}:
            return
        sums: defaultdict[str, float] = defaultdict(float)
        for file in files:
            for key, value, _, _ in MmapedDict.read_all_values_from_file(file):
                sums[key] += value
        new = self.folder / f"{kind}.new"
        new.unlink(missing_ok=True)
        with closing(NumberFile(new)) as written:
            for key, value in sums.items():
                written.add(key, value)
        new.replace(total)
        for file in set(files) - {total}:
            file.unlink()

    @contextmanager
    def _lock(self, operation: int) -> Iterator[None]:
        self.be_there()
        # Opened each time: a lock belongs to an open file, which forked processes and threads would share.
        with (self.folder / "lock").open("a") as file:
            fcntl.flock(file, operation)
            yield


@contextmanager
def made() -> Iterator[MetricFiles]:
    """A folder in memory where there is such a place. Gone at the end, which in forked processes is not its end."""
    home, maker = _home(), os.getpid()
    _remove_deserted(home)
    folder, held = _new_folder(home)
    try:
        yield MetricFiles(folder)
    finally:
        if os.getpid() == maker:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(held)


def _process_of(file: Path) -> int | str:
    name = file.stem.rpartition("_")[2]
    return int(name) if name.isdigit() else name


def _home() -> Path:
    return SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())


def _new_folder(home: Path) -> tuple[Path, int]:
    """The folder, and an open file that holds it for as long as any process of the family has it."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=home))
    except OSError as error:
        raise SettingsError(f"{home} has no room for metrics ({error.strerror})") from None
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    # Under that name only now: another service that starts would take it for deserted.
    return folder.rename(home / folder.name.removeprefix(".")), held


def _remove_deserted(home: Path) -> None:
    """What services have left behind that were killed."""
    for folder in home.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            held = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(held)
