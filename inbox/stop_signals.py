"""How a command is told to stop, and from when on that comes too late."""

import signal
from types import FrameType

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stop_as_at_ctrl_c() -> None:
    """A command that is told to end, or whose terminal has gone, removes what is unfinished."""
    for each in _STOPS:
        # As nohup asks for it.
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _stop)


def too_late_to_stop() -> set[int]:
    """Whoever says stop from here on is not heard: for the last steps of a command, and all that it does after them.

    Which signals were not heard before.
    """
    # Not by another handler: Python takes them away before a process ends, and what is done would end by a signal.
    return signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)


def _stop(number: int, _frame: FrameType | None) -> None:
    # A terminal that goes says so twice, by its shell and by itself, and the second would interrupt the tidying up.
    # Python may call this for it all the same, where both came before it had called it for the first.
    if number not in too_late_to_stop():
        raise KeyboardInterrupt
