"""One time for all processes on a database. `inbox.store.sqlite.clock`."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from inbox.errors import StoreUnavailable
from inbox.store.sqlite.clock import SharedClock, boot_id
from inbox.store.sqlite.database import Database

FIVE_MINUTES = 300.0
HOUR = 3600.0
DAY = 24 * HOUR
START_MS = 1_732_140_249_123
# Announced two minutes ahead, and seen by whoever looks once a minute.
NOTICED_SECONDS = 190.0


class Machine:
    """Its clocks, both in nanoseconds: the steady one that counts from its start, and that on the wall."""

    def __init__(self) -> None:
        self._steady_ns = 10**12
        self._wall_lead_ns = START_MS * 10**6 - self._steady_ns

    def steady_ns(self) -> int:
        return self._steady_ns

    def wall_ns(self) -> int:
        return self._steady_ns + self._wall_lead_ns

    def wall_ms(self) -> int:
        return self.wall_ns() // 10**6

    def wait(self, seconds: float) -> None:
        self._steady_ns += round(seconds * 10**9)

    def set_wall(self, seconds: float) -> None:
        self._wall_lead_ns += round(seconds * 10**9)

    def go_back(self, seconds: float) -> None:
        """To an earlier state of itself; what is on the wall goes on."""
        self._steady_ns -= round(seconds * 10**9)
        self._wall_lead_ns += round(seconds * 10**9)

    def restart(self) -> None:
        wall_ns = self.wall_ns()
        self._steady_ns = 10**9
        self._wall_lead_ns = wall_ns - self._steady_ns


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path / "inbox.db")) as database:
        database.make()
        yield database


def process(database: Database, machine: Machine, boot: str | None = "boot") -> SharedClock:
    return SharedClock(database, boot, machine.wall_ns, machine.steady_ns)


def processes(database: Database, machine: Machine, count: int) -> list[SharedClock]:
    """Each looks at another time what the others have agreed on."""
    opened = []
    for _ in range(count):
        machine.wait(17)
        opened.append(process(database, machine))
    return opened


def test_the_first_says_what_time_it_is_and_the_others_take_it_over(database: Database, machine: Machine) -> None:
    first = process(database, machine)
    assert first.now_ms() == START_MS
    machine.wait(7)
    for step in (FIVE_MINUTES, -2 * FIVE_MINUTES, 30 * DAY):
        machine.set_wall(step)
        assert process(database, machine).now_ms() == first.now_ms() == START_MS + 7_000


@pytest.mark.parametrize("step", [FIVE_MINUTES, -FIVE_MINUTES])
def test_a_step_of_the_wall_clock_is_followed_slowly_and_by_all_together(
    database: Database, machine: Machine, step: float
) -> None:
    busy, idle = processes(database, machine, 2)
    machine.set_wall(step)
    newest_ms = busy.now_ms()
    for round_ in range(int(9 * HOUR / 10)):
        machine.wait(10)
        now_ms = busy.now_ms()
        assert 9_900 <= now_ms - newest_ms <= 10_100
        newest_ms = now_ms
        if round_ % 50 == 0:
            assert idle.now_ms() == now_ms
    assert abs(newest_ms - machine.wall_ms()) <= 1


def test_a_clock_that_comes_back_is_followed_back_without_a_step(database: Database, machine: Machine) -> None:
    clock, other = processes(database, machine, 2)
    newest_ms = clock.now_ms()
    for step in (FIVE_MINUTES, -FIVE_MINUTES):
        machine.set_wall(step)
        for _ in range(100):
            machine.wait(10)
            assert 9_900 <= clock.now_ms() - newest_ms <= 10_100
            assert other.now_ms() == clock.now_ms()
            newest_ms = clock.now_ms()
    machine.wait(HOUR)
    assert clock.now_ms() == machine.wall_ms()


def test_a_twitch_is_not_followed(database: Database, machine: Machine) -> None:
    clock = process(database, machine)
    machine.set_wall(0.4)
    for _ in range(60):
        machine.wait(60)
        assert clock.now_ms() == machine.wall_ms() - 400


@pytest.mark.parametrize("off", [DAY, -DAY])
def test_a_clock_that_was_far_off_is_set_at_once_in_every_process(
    database: Database, machine: Machine, off: float
) -> None:
    clocks = processes(database, machine, 3)
    machine.set_wall(off)
    waited = 0
    while waited < NOTICED_SECONDS:
        machine.wait(5)
        waited += 5
        assert len({clock.now_ms() for clock in clocks}) == 1
    assert clocks[0].now_ms() == machine.wall_ms()


def test_a_machine_that_was_started_again_begins_with_its_wall_clock(database: Database, machine: Machine) -> None:
    process(database, machine, "one boot")
    machine.set_wall(FIVE_MINUTES)
    machine.restart()
    machine.wait(HOUR)
    clock = process(database, machine, "the next")
    assert clock.now_ms() == machine.wall_ms()
    machine.wait(60)
    assert process(database, machine, "the next").now_ms() == machine.wall_ms()


def test_a_machine_that_was_put_back_to_an_earlier_state_begins_anew(database: Database, machine: Machine) -> None:
    machine.wait(DAY)
    process(database, machine)
    machine.go_back(DAY)
    assert process(database, machine).now_ms() == machine.wall_ms()


def test_without_a_boots_id_every_process_keeps_its_own_course(database: Database, machine: Machine) -> None:
    clock = process(database, machine, None)
    machine.set_wall(FIVE_MINUTES)
    machine.wait(10)
    assert clock.now_ms() == START_MS + 10_000
    assert process(database, machine, None).now_ms() == machine.wall_ms()
    for _ in range(10):
        machine.wait(HOUR)
        clock.now_ms()
    assert clock.now_ms() == machine.wall_ms()
    assert database.read("SELECT * FROM clock") == []


def test_a_database_that_cannot_be_written_is_no_reason_not_to_open_it(
    database: Database, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreUnavailable("The database did not answer.")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "write", fail)
        clock = process(database, machine)
        assert clock.now_ms() == START_MS
        machine.set_wall(FIVE_MINUTES)
        machine.wait(10)
        assert clock.now_ms() == START_MS + 10_000
    agreed = process(database, machine)
    machine.wait(2)
    assert clock.now_ms() == agreed.now_ms() == machine.wall_ms()


def test_what_was_agreed_holds_where_no_change_can_be_written(
    database: Database, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreUnavailable("The database did not answer.")

    first = process(database, machine)
    machine.set_wall(FIVE_MINUTES)
    monkeypatch.setattr(Database, "write", fail)
    assert process(database, machine).now_ms() == first.now_ms() == START_MS


def test_the_boot_has_the_same_id_for_everybody() -> None:
    # None where the system does not tell, as on macOS.
    assert boot_id() == boot_id() != ""
