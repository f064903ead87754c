"""Numbers in files that other processes read, laid out as prometheus_client's multiprocess mode has them.

Its own class for them asks at each change for the number of its process and writes through a dictionary, a mutex and
two layers, and a file system that is full ends the process. This one keeps a window on each number: a third of the
price, and where there is no room for one more it counts for nobody.
"""

import errno
import mmap
import os
import struct
from array import array
from pathlib import Path
from threading import Lock
from typing import Any

from prometheus_client.mmap_dict import mmap_key

_FIRST_BYTES = 1 << 16
_HEAD = struct.Struct("ii")


class NumberFile:
    """How much of it is in use; then for each number the length of its key, the key, the number, and a time.

    The key is padded so that each number is aligned, and is written in one go: who reads it sees it before or after.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            # Under its name only with a head: whoever adds up may come at any moment.
            beginning = path.with_suffix(".begun")
            beginning.write_bytes(_HEAD.pack(_HEAD.size, 0))
            beginning.replace(path)
        self._file = os.open(path, os.O_RDWR)
        self._used: int = _HEAD.unpack(os.pread(self._file, _HEAD.size, 0))[0]
        self._map = self._mapped()

    def add(self, key: str, value: float = 0.0) -> "memoryview[float]":
        """A window on a new number, valid for as long as it is held. Who reads the file adds up those of one key.

        So what an earlier process of the same number has left counts on, and nobody has to look for it.
        """
        encoded = key.encode()
        padded = encoded + b" " * (8 - (len(encoded) + 4) % 8)
        entry = struct.pack(f"i{len(padded)}sdd", len(encoded), padded, value, 0.0)
        # Written by a call and not through the map: a file system without room refuses the one, and ends the process
        # at the other.
        if os.pwrite(self._file, entry, self._used) < len(entry):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self._used + len(entry) > len(self._map):
            self._map = self._mapped()
        self._used += len(entry)
        os.pwrite(self._file, _HEAD.pack(self._used, 0), 0)
        return memoryview(self._map)[self._used - 16 : self._used - 8].cast("d")

    def close(self) -> None:
        os.close(self._file)

    def _mapped(self) -> mmap.mmap:
        # Windows on an earlier map keep it, and see the same file.
        size = _FIRST_BYTES
        while size < os.fstat(self._file).st_size:
            size *= 2
        os.ftruncate(self._file, size)
        return mmap.mmap(self._file, size)


def values_in(folder: Path) -> type:
    """What prometheus_client makes its numbers of, for this process. Ask for it after the fork."""
    mutex, files, process = Lock(), dict[str, NumberFile](), os.getpid()

    def window(kind: str, key: str) -> Any:
        with mutex:
            try:
                if kind not in files:
                    files[kind] = NumberFile(folder / f"{kind}_{process}.db")
                return files[kind].add(key)
            except OSError:
                return array("d", [0.0])

    class Value:
        _multiprocess = True

        def __init__(self, kind: str, *key: Any, multiprocess_mode: str = "", **_: Any) -> None:
            self._window = window(f"{kind}_{multiprocess_mode}" if multiprocess_mode else kind, mmap_key(*key))

        def inc(self, amount: float) -> None:
            with mutex:
                self._window[0] += amount

        def set(self, value: float, timestamp: float | None = None) -> None:  # noqa: ARG002 - as it is called
            with mutex:
                self._window[0] = value

        def get(self) -> float:
            value: float = self._window[0]
            return value

        def set_exemplar(self, _exemplar: Any) -> None:
            """Files have none."""

        def get_exemplar(self) -> None:
            """Files have none."""

    return Value
