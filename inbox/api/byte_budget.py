"""A limit to what the threads of a process hold in memory at the same time."""

import threading

from inbox.errors import Overloaded


class ByteBudget:
    """Counts bytes that are reserved. Thread-safe, and never waits."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._reserved_bytes = 0
        self._mutex = threading.Lock()

    def reserve(self, size: int) -> None:
        """Raises Overloaded, and reserves nothing, if the limit would be exceeded."""
        with self._mutex:
            if self._reserved_bytes + size > self.limit_bytes:
                raise Overloaded
            self._reserved_bytes += size

    def release(self, size: int) -> None:
        with self._mutex:
            self._reserved_bytes -= size
