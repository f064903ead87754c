"""Signals that stop a command: Ctrl-C, SIGTERM and the hang-up of its terminal."""

import signal
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt_on_stop_signals() -> None:
    """Raises KeyboardInterrupt at the first stop signal, so that the command removes unfinished files."""
    for each in _SIGNALS:
        # nohup sets SIGHUP to be ignored.
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _interrupt)


def block_stop_signals() -> set[int]:
    """Blocks stop signals for the rest of the process. Returns the signals that were blocked before."""
    # A handler is not enough: Python removes handlers before a process ends, and the signal would kill it.
    return signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    # A terminal that closes sends two signals, and the second would interrupt the clean-up. Python calls this for the
    # second too if both arrived before the first call.
    if number not in block_stop_signals():
        raise KeyboardInterrupt
