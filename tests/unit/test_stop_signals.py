"""Signals that tell a command to stop. `inbox.stop_signals`."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from inbox.stop_signals import stop_as_at_ctrl_c, too_late_to_stop

STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]

# All of them at once, before Python hears of any, and each once more while it tidies up.
IN_A_ROW = """
import os, signal
from inbox.stop_signals import stop_as_at_ctrl_c
stops = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
stop_as_at_ctrl_c()
signal.pthread_sigmask(signal.SIG_BLOCK, stops)
for each in stops:
    signal.raise_signal(each)
try:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)
except KeyboardInterrupt:
    for each in stops:
        os.kill(os.getpid(), each)
    print("tidy")
"""
LATE = """
import signal
from inbox.stop_signals import stop_as_at_ctrl_c, too_late_to_stop
class AtTheVeryEnd:
    def __del__(self, stop=signal.SIGTERM, tell=signal.raise_signal):
        tell(stop)
stop_as_at_ctrl_c()
too_late_to_stop()
signal.raise_signal(signal.SIGINT)
signal.last = AtTheVeryEnd()
"""


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {each: signal.getsignal(each) for each in STOPS}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


def run(program: str) -> tuple[int, str, str]:
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("stop", STOPS)
def test_the_first_signal_stops_and_those_after_it_let_it_tidy_up(stop: signal.Signals) -> None:
    stop_as_at_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(stop)
    for each in STOPS:
        signal.raise_signal(each)
    assert signal.sigpending() == set(STOPS)


def test_signals_at_one_moment_are_one_stop() -> None:
    assert run(IN_A_ROW) == (0, "tidy\n", "")


def test_who_was_started_with_nohup_goes_on_without_a_terminal() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop_as_at_ctrl_c()
    signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize("stop", STOPS)
def test_a_stop_after_the_last_step_comes_too_late(stop: signal.Signals) -> None:
    stop_as_at_ctrl_c()
    too_late_to_stop()
    signal.raise_signal(stop)
    assert signal.sigpending() == {stop}


def test_what_is_done_ends_well_whoever_says_stop_at_its_very_end() -> None:
    assert run(LATE) == (0, "", "")
