"""The one clock that everything is wired to."""

import time


def now_ms() -> int:
    return time.time_ns() // 1_000_000
