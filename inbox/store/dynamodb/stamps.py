"""Where a new event stands in the inbox."""

import secrets
import threading
import time

from inbox.store.dynamodb.layout import place


class Stamps:
    """Places that only rise, for one process.

    Nothing in DynamoDB counts for all processes without becoming a bottleneck, so the clocks decide: the caller's down
    to the millisecond, and below that the machine's monotonic clock, which all of its processes share.
    """

    def __init__(self) -> None:
        self._origin = secrets.token_hex(3)
        self._mutex = threading.Lock()
        self._newest_ms = 0
        self._tick = 0

    def take(self, now_ms: int, count: int) -> tuple[int, list[str]]:
        """The timestamp of events that are put together, and a place for each of them in their order."""
        with self._mutex:
            # A clock that stepped back must not put an event before those that came earlier.
            self._newest_ms = timestamp_ms = max(now_ms, self._newest_ms)
            first = max(time.monotonic_ns(), self._tick + 1)
            self._tick = first + count
        return timestamp_ms, [place(timestamp_ms, first + number, self._origin) for number in range(count)]
