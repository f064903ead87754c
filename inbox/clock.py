"""The clocks of this machine. What decides anything is the store's own: `Store.now_ms`."""

import time

if hasattr(time, "CLOCK_BOOTTIME"):

    def steady_ns() -> int:
        """Never falls and is never set, the same in all processes, and runs on while the machine sleeps."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

else:

    def steady_ns() -> int:
        """Never falls and is never set."""
        return time.monotonic_ns()


def wall_ns() -> int:
    """What people set, and time servers correct: it may step, either way."""
    return time.time_ns()


def now_ms() -> int:
    return wall_ns() // 1_000_000
