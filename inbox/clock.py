"""The clock for leases, delays, retention, key expiry and timestamps.

A clock reads the wall clock when it is created. From then on it counts the machine's steady clock, which cannot be set:
a step of the wall clock ends no lease early and reorders no events. After a step, the clock approaches the wall clock
by 1 % of the time that passes: a lease of 30 seconds changes by 0.3 seconds, and a step of 5 seconds takes 8 minutes.

The worker processes of a service share the offset, in memory that was allocated before the fork: a worker that starts
after a step does not expire the leases of the others. The offset is not stored: a restart reads the wall clock again.

The clock follows a step of more than an hour at once: the wall clock was wrong, as on a machine without a battery.

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
        """Returns a time that advances while the machine sleeps, unlike the monotonic clock."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

else:
    steady_ns = time.monotonic_ns


class Clock:
    """The clock of a process and of those that are forked from it later."""

    def __init__(self, wall_ns: Callable[[], int] = time.time_ns, steady_ns: Callable[[], int] = steady_ns) -> None:
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._mutex = threading.Lock()
        self._newest_ns = 0
        self._corrected_at_ns = SharedInteger(steady_ns())
        self._offset_ns = SharedInteger(wall_ns() - steady_ns())

    def now_ms(self) -> int:
        """Returns epoch milliseconds, which never decrease unless the wall clock was more than an hour ahead."""
        with self._mutex:
            steady_ns = self._steady_ns()
            if steady_ns - self._corrected_at_ns.value >= _CORRECT_EVERY_NS:
                self._correct(steady_ns)
            now_ns = steady_ns + self._offset_ns.value
            # A correction may set the time back, by less than a millisecond while requests arrive.
            if not 0 < self._newest_ns - now_ns < _MAX_HELD_NS:
                self._newest_ns = now_ns
            return self._newest_ns // 1_000_000

    def _correct(self, steady_ns: int) -> None:
        # Needs no lock: processes that correct the offset at the same time compute the same value.
        offset_ns = self._offset_ns.value
        error_ns = self._wall_ns() - steady_ns - offset_ns
        if abs(error_ns) <= _MAX_SLEWED_NS:
            limit_ns = (steady_ns - self._corrected_at_ns.value) // _SLEW_DIVISOR
            error_ns = max(-limit_ns, min(error_ns, limit_ns))
        self._offset_ns.value = offset_ns + error_ns
        self._corrected_at_ns.value = steady_ns
