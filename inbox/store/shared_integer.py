"""An integer in memory that forked processes share."""

import mmap

_BYTES = 8


class SharedInteger:
    """Zero or more. Created before the fork, it is one number for all processes."""

    def __init__(self) -> None:
        self._memory = memoryview(mmap.mmap(-1, _BYTES)).cast("Q")

    @property
    def value(self) -> int:
        return self._memory[0]

    @value.setter
    def value(self, value: int) -> None:
        self._memory[0] = value
