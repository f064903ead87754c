"""Signals that tell a command to stop. `inbox.interrupts`."""

import signal
from collections.abc import Iterator

import pytest

from inbox.interrupts import listening, stop_as_at_ctrl_c, undisturbed

STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {each: signal.getsignal(each) for each in STOPS}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.parametrize("stop", STOPS)
def test_the_first_signal_stops_and_those_after_it_let_it_tidy_up(stop: signal.Signals) -> None:
    stop_as_at_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(stop)
    for each in STOPS:
        signal.raise_signal(each)


def test_who_was_started_with_nohup_goes_on_without_a_terminal() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop_as_at_ctrl_c()
    signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize("stop", STOPS)
def test_a_stop_at_the_last_step_comes_too_late(stop: signal.Signals) -> None:
    stop_as_at_ctrl_c()
    with undisturbed():
        signal.raise_signal(stop)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(stop)


def test_a_stop_at_a_last_step_that_fails_is_heard() -> None:
    def fail() -> None:
        with undisturbed():
            signal.raise_signal(signal.SIGINT)
            raise OSError

    stop_as_at_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        fail()


@pytest.mark.parametrize("stop", STOPS)
def test_a_stop_before_one_listens_again_is_heard_then(stop: signal.Signals) -> None:
    heard: list[str] = []

    def work() -> None:
        with undisturbed():
            signal.raise_signal(stop)
            heard.append("not yet")
            with listening():
                heard.append("too late")

    stop_as_at_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        work()
    assert heard == ["not yet"]


def test_who_has_listened_is_undisturbed_again() -> None:
    stop_as_at_ctrl_c()
    with undisturbed():
        with listening():
            pass
        signal.raise_signal(signal.SIGTERM)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
