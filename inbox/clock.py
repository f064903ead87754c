"""The time that leases, delays, retention, keys and timestamps go by.

The wall clock is read when the clock is created. From then on the machine's steady clock counts. Nobody sets it, so a
step of the wall clock ends no lease early and reorders nothing. The time approaches a wall clock that was set by 1 %
of the time that passes: a lease of 30 seconds changes by 0.3 seconds, and a step of 5 seconds takes 8 minutes.

The worker processes of a service share the offset, in memory that was allocated before the fork: one that starts after
a step does not expire the leases of the others. The offset is not stored, so a restart takes the wall clock over.

A step of more than an hour is followed at once: the clock was plainly wrong, as on a machine without a battery.

Other processes and machines have clocks of their own, and agree as far as the wall clocks do: hosts need NTP.
"""

import threading
import time
from collections.abc import Callable

from inbox.shared_integer import SharedInteger

_MAX_SLEWED_NS = 3600 * 10**9
_SLEW_DIVISOR = 100
_CORRECT_EVERY_NS = 10_000_000
_MAX_HELD_NS = 10**9

if hasattr(time, "CLOCK_BOOTTIME"):

    def steady_ns() -> int:
        """Unlike the monotonic clock, this one goes on while the machine sleeps."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

else:
    steady_ns = time.monotonic_ns


class Clock:
    """A clock for one process and for those that are forked from it later."""

    def __init__(self, wall_ns: Callable[[], int] = time.time_ns, steady_ns: Callable[[], int] = steady_ns) -> None:
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._mutex = threading.Lock()
        self._newest_ns = 0
        self._corrected_at_ns = SharedInteger(steady_ns())
        self._offset_ns = SharedInteger(wall_ns() - steady_ns())

    def now_ms(self) -> int:
        """Returns the time. It never falls within a process, unless it follows a wall clock that was an hour off."""
        with self._mutex:
            steady_ns = self._steady_ns()
            if steady_ns - self._corrected_at_ns.value >= _CORRECT_EVERY_NS:
                self._correct(steady_ns)
            now_ns = steady_ns + self._offset_ns.value
            # A correction may put the time back, by less than a millisecond while polls come in.
            if not 0 < self._newest_ns - now_ns < _MAX_HELD_NS:
                self._newest_ns = now_ns
            return self._newest_ns // 1_000_000

    def _correct(self, steady_ns: int) -> None:
        # Without a lock between processes: two that come at the same time compute the same.
        offset_ns = self._offset_ns.value
        error_ns = self._wall_ns() - steady_ns - offset_ns
        if abs(error_ns) <= _MAX_SLEWED_NS:
            limit_ns = (steady_ns - self._corrected_at_ns.value) // _SLEW_DIVISOR
            error_ns = max(-limit_ns, min(error_ns, limit_ns))
        self._offset_ns.value = offset_ns + error_ns
        self._corrected_at_ns.value = steady_ns
