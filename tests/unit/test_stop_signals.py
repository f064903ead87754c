"""Signals that tell a command to stop. `inbox.stop_signals`."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from inbox.stop_signals import block_stop_signals, interrupt_on_stop_signals

STOP_SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]

# Raises all signals before Python handles the first, and all again during the clean-up.
AT_ONCE = """
import os, signal
from inbox.stop_signals import interrupt_on_stop_signals
stops = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
interrupt_on_stop_signals()
signal.pthread_sigmask(signal.SIG_BLOCK, stops)
for each in stops:
    signal.raise_signal(each)
try:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)
except KeyboardInterrupt:
    for each in stops:
        os.kill(os.getpid(), each)
    print("clean")
"""
AT_EXIT = """
import signal
from inbox.stop_signals import interrupt_on_stop_signals, block_stop_signals
class RaisesSignal:
    def __del__(self, number=signal.SIGTERM, raise_signal=signal.raise_signal):
        raise_signal(number)
interrupt_on_stop_signals()
block_stop_signals()
signal.raise_signal(signal.SIGINT)
signal.last = RaisesSignal()
"""


@pytest.fixture(autouse=True)
def restore_handlers() -> Iterator[None]:
    before = {each: signal.getsignal(each) for each in STOP_SIGNALS}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


def run(program: str) -> tuple[int, str, str]:
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("stop", STOP_SIGNALS)
def test_only_the_first_signal_interrupts(stop: signal.Signals) -> None:
    interrupt_on_stop_signals()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(stop)
    for each in STOP_SIGNALS:
        signal.raise_signal(each)
    assert signal.sigpending() == set(STOP_SIGNALS)


def test_signals_at_the_same_time_interrupt_once() -> None:
    assert run(AT_ONCE) == (0, "clean\n", "")


def test_hangup_stays_ignored_under_nohup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    interrupt_on_stop_signals()
    signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize("stop", STOP_SIGNALS)
def test_blocked_signal_does_not_interrupt(stop: signal.Signals) -> None:
    interrupt_on_stop_signals()
    block_stop_signals()
    signal.raise_signal(stop)
    assert signal.sigpending() == {stop}


def test_blocked_signal_does_not_end_a_process_at_exit() -> None:
    assert run(AT_EXIT) == (0, "", "")
