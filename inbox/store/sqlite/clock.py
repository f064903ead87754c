"""One time for all processes on a database, which no step of the machine's wall clock disturbs.

They share the clock that counts from the start of the machine. How far the time lies ahead of it is written down by the
first of them, from its wall clock, and the others take it over. A wall clock that was set since is followed slowly, and
by all together: a change is announced for a moment by which every process has looked again.
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from inbox import clock
from inbox.errors import StoreUnavailable
from inbox.store.sqlite.database import Database

_SECOND_NS = 10**9
_LOOK_EVERY_NS = 60 * _SECOND_NS
_TRY_AGAIN_NS = _SECOND_NS
_NOTICE_NS = 2 * _LOOK_EVERY_NS
# Leases, too, get shorter or longer by one part in so many.
_SLOWNESS = 100
_NEAR_ENOUGH_NS = _SECOND_NS // 2
# A clock that is off by more has only now been set for the first time, as on a machine that keeps none while it is off.
_FAR_OFF_NS = 3600 * _SECOND_NS

_READ = "SELECT from_ns, lead_ns, goal_ns FROM clock WHERE boot_id = ? ORDER BY from_ns"
_WRITE = "INSERT INTO clock (boot_id, from_ns, lead_ns, goal_ns) VALUES (?, ?, ?, ?)"


class Bend(NamedTuple):
    """From when on, by the steady clock, the lead over it goes from one value to another."""

    from_ns: int
    lead_ns: int
    goal_ns: int

    def lead_at(self, steady_ns: int) -> int:
        if self.lead_ns == self.goal_ns:
            return self.lead_ns
        limit = max(steady_ns - self.from_ns, 0) // _SLOWNESS
        return self.lead_ns + max(-limit, min(self.goal_ns - self.lead_ns, limit))


Course = tuple[Bend, ...]
"""The bend in force, and another one where it is announced."""


def lead_at(course: Course, steady_ns: int) -> int:
    latest = course[-1]
    return (latest if latest.from_ns <= steady_ns else course[0]).lead_at(steady_ns)


def followed(course: Course, steady_ns: int, wall_ns: int) -> Course:
    """The same course, unless the wall clock says something else than it leads to."""
    goal_ns = wall_ns - steady_ns
    # Announced for later than anybody does: the machine has been put back to an earlier state of itself.
    if not course or course[-1].from_ns > steady_ns + _NOTICE_NS:
        return (Bend(steady_ns, goal_ns, goal_ns),)
    latest = course[-1]
    if latest.from_ns > steady_ns or abs(goal_ns - latest.goal_ns) < _NEAR_ENOUGH_NS:
        return course
    from_ns = steady_ns + _NOTICE_NS
    lead_ns = latest.lead_at(from_ns)
    is_far_off = abs(goal_ns - lead_ns) > _FAR_OFF_NS
    return latest, Bend(from_ns, goal_ns if is_far_off else lead_ns, goal_ns)


def boot_id() -> str | None:
    """Which start of the machine the steady clock counts from, where the system tells."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return None


class SharedClock:
    """Without a boot's id a process cannot know whose clock others have read, and keeps its course to itself."""

    def __init__(
        self,
        database: Database,
        boot: str | None,
        wall_ns: Callable[[], int] = clock.wall_ns,
        steady_ns: Callable[[], int] = clock.steady_ns,
    ) -> None:
        self._database = database
        self._boot = boot
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._looking = threading.Lock()
        self._look_at_ns = 0
        self._course: Course = ()
        self.now_ms()

    def now_ms(self) -> int:
        # Nobody goes by a course that is older than the notice of a change, however long it was idle.
        steady_ns = self._steady_ns()
        if steady_ns >= self._look_at_ns and self._looking.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._looking.release()
            steady_ns = self._steady_ns()
        return (steady_ns + lead_at(self._course, steady_ns)) // 1_000_000

    def _look(self) -> None:
        pause_ns = _LOOK_EVERY_NS
        try:
            self._course = self._agreed()
        except StoreUnavailable:
            # Where nothing can be written, nothing can be leased either: meanwhile its own course is good enough.
            self._course = self._course or self._followed(())
            pause_ns = _TRY_AGAIN_NS
        self._look_at_ns = self._steady_ns() + pause_ns

    def _agreed(self) -> Course:
        if self._boot is None:
            return self._followed(self._course)
        course = _course(self._database.read(_READ, (self._boot,)))
        # What the others go by. It holds as long as no change to it can be written.
        self._course = course or self._course
        return course if self._followed(course) == course else self._database.write(self._agree)

    def _agree(self, connection: apsw.Connection) -> Course:
        course = _course(connection.execute(_READ, (self._boot,)).fetchall())
        agreed = self._followed(course)
        if agreed != course:
            connection.execute("DELETE FROM clock")
            connection.executemany(_WRITE, [(self._boot, *bend) for bend in agreed])
        return agreed

    def _followed(self, course: Course) -> Course:
        return followed(course, self._steady_ns(), self._wall_ns())


def _course(rows: Iterable[tuple[Any, ...]]) -> Course:
    return tuple(Bend(*row) for row in rows)
