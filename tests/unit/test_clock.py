"""The clock for leases and timestamps. `inbox.clock`."""

import os

import pytest

from inbox.clock import Clock

FIVE_MINUTES_S = 300.0
HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
START_MS = 1_732_140_249_123


class Machine:
    """A fake machine with a steady clock and a wall clock, both in nanoseconds."""

    def __init__(self) -> None:
        self._steady_ns = 10**12
        self._offset_ns = START_MS * 10**6 - self._steady_ns

    def steady_ns(self) -> int:
        return self._steady_ns

    def wall_ns(self) -> int:
        return self._steady_ns + self._offset_ns

    def wall_ms(self) -> int:
        return self.wall_ns() // 10**6

    def wait(self, seconds: float) -> None:
        self._steady_ns += round(seconds * 10**9)

    def step_wall_clock(self, seconds: float) -> None:
        self._offset_ns += round(seconds * 10**9)

    def start_process(self) -> Clock:
        """Returns the clock of a new process."""
        return Clock(self.wall_ns, self.steady_ns)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_time_starts_at_the_wall_clock(machine: Machine) -> None:
    clock = machine.start_process()
    assert clock.now_ms() == START_MS
    machine.wait(30 * 24 * HOUR_S)
    assert clock.now_ms() == machine.wall_ms()


@pytest.mark.parametrize("step_seconds", [FIVE_MINUTES_S, -FIVE_MINUTES_S, HOUR_S, -HOUR_S])
def test_step_of_the_wall_clock_changes_a_lease_by_one_percent(machine: Machine, step_seconds: float) -> None:
    clock = machine.start_process()
    machine.wait(10)
    leased_at_ms = clock.now_ms()
    machine.step_wall_clock(step_seconds)
    for _ in range(100):
        machine.wait(0.3)
        clock.now_ms()
    assert abs(clock.now_ms() - leased_at_ms - 30_000) <= 301


@pytest.mark.parametrize("step_seconds", [FIVE_MINUTES_S, -FIVE_MINUTES_S])
def test_time_reaches_a_wall_clock_that_was_stepped(machine: Machine, step_seconds: float) -> None:
    clock = machine.start_process()
    machine.step_wall_clock(step_seconds)
    for _ in range(int(9 * HOUR_S / 60)):
        machine.wait(60)
        clock.now_ms()
    assert clock.now_ms() == machine.wall_ms()


@pytest.mark.parametrize("pause_seconds", [0.000_1, 0.003, 0.02, 60])
def test_time_never_goes_back(machine: Machine, pause_seconds: float) -> None:
    clock = machine.start_process()
    newest_ms = clock.now_ms()
    for number in range(2_000):
        machine.wait(pause_seconds)
        if number % 100 == 0:
            machine.step_wall_clock(FIVE_MINUTES_S if number % 200 else -FIVE_MINUTES_S)
        assert clock.now_ms() >= newest_ms
        newest_ms = clock.now_ms()


@pytest.mark.parametrize("step_seconds", [DAY_S, -DAY_S, HOUR_S + 1, -HOUR_S - 1])
def test_step_of_more_than_an_hour_is_followed_at_once(machine: Machine, step_seconds: float) -> None:
    clock = machine.start_process()
    machine.wait(10)
    clock.now_ms()
    machine.step_wall_clock(step_seconds)
    machine.wait(1)
    assert clock.now_ms() == machine.wall_ms()
    machine.wait(1)
    assert clock.now_ms() == machine.wall_ms()


def test_restarted_process_uses_the_wall_clock(machine: Machine) -> None:
    machine.start_process().now_ms()
    machine.step_wall_clock(FIVE_MINUTES_S)
    assert machine.start_process().now_ms() == machine.wall_ms()


def read_now_ms_in_forked_process(clock: Clock) -> int:
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        os.write(writer, str(clock.now_ms()).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        return int(pipe.read())


@pytest.mark.parametrize("step_seconds", [FIVE_MINUTES_S, -FIVE_MINUTES_S, DAY_S, -DAY_S])
def test_forked_processes_have_the_same_time_after_a_step(machine: Machine, step_seconds: float) -> None:
    clock = machine.start_process()
    machine.wait(10)
    machine.step_wall_clock(step_seconds)
    machine.wait(10)
    worker_ms = read_now_ms_in_forked_process(clock)
    assert clock.now_ms() == worker_ms
    machine.wait(10)
    worker_ms = read_now_ms_in_forked_process(clock)
    assert read_now_ms_in_forked_process(clock) == clock.now_ms() == worker_ms
