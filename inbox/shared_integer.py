"""An integer in memory that forked processes share."""

import mmap

_BYTES = 8


class SharedInteger:
    """A signed integer of 64 bits. Create it before the fork to share it between processes."""

    def __init__(self, value: int = 0) -> None:
        self._memory = memoryview(mmap.mmap(-1, _BYTES)).cast("q")
        self._memory[0] = value

    @property
    def value(self) -> int:
        return self._memory[0]

    @value.setter
    def value(self, value: int) -> None:
        self._memory[0] = value
