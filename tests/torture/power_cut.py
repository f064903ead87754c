"""A SQLite VFS that separates synced from unsynced writes, and shows the files as a power cut would leave them.

Killing a process does not show a missing fsync, because the operating system still has what the process wrote.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apsw

PLAIN_DISK = "unix"

_Write = tuple[int, bytes]
_Truncation = int


@dataclass
class _Content:
    synced: bytearray
    unsynced: list[_Write | _Truncation] = field(default_factory=list)

    def sync(self) -> None:
        for change in self.unsynced:
            _apply(self.synced, change)
        self.unsynced.clear()

    def cut(self) -> bytes:
        """Returns the content with each unsynced write either done or not."""
        found = bytearray(self.synced)
        for change in self.unsynced:
            if random.random() < 0.5:
                _apply(found, change)
        return bytes(found)


def _apply(content: bytearray, change: _Write | _Truncation) -> None:
    if isinstance(change, int):
        del content[change:]
        return
    offset, data = change
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


class SimulatedDisk(apsw.VFS):
    """The default VFS for every database opened while it is registered."""

    def __init__(self) -> None:
        self.name = "simulated"
        self.files: dict[str, _Content] = {}
        self.mutex = threading.Lock()
        super().__init__(self.name, PLAIN_DISK, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else str(name))
        with self.mutex:
            existing = path.read_bytes() if path.exists() else b""
            content = self.files.setdefault(str(path), _Content(bytearray(existing)))
        return _File(self, content, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        with self.mutex:
            self.files.pop(filename, None)

    def cut(self, folder: Path) -> None:
        """Writes the files to the folder as a power cut at this moment would leave them."""
        with self.mutex:
            found = {path: content.cut() for path, content in self.files.items()}
        for path, data in found.items():
            (folder / Path(path).name).write_bytes(data)


class _File(apsw.VFSFile):
    def __init__(
        self, disk: SimulatedDisk, content: _Content, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._disk = disk
        self._content = content
        super().__init__(PLAIN_DISK, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        with self._disk.mutex:
            super().xWrite(data, offset)
            self._content.unsynced.append((offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        with self._disk.mutex:
            super().xTruncate(newsize)
            self._content.unsynced.append(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        with self._disk.mutex:
            super().xSync(flags)
            self._content.sync()


@contextmanager
def simulate_disk() -> Iterator[SimulatedDisk]:
    disk = SimulatedDisk()
    try:
        yield disk
    finally:
        disk.unregister()
