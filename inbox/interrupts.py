"""How a command is told to stop, and the moments at which it comes too late."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stop_as_at_ctrl_c() -> None:
    """A command that is told to end, or whose terminal has gone, removes what is unfinished."""
    for each in _STOPS:
        # As nohup asks for it.
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _stop)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Whoever says stop meanwhile comes too late, unless it fails."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    try:
        yield
        while pending := signal.sigpending().intersection(_STOPS):
            signal.sigwait(pending)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def listening() -> Iterator[None]:
    """In the midst of `undisturbed`: whoever says stop now, or has said so meanwhile, is heard."""
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    # A terminal that goes says so twice, by its shell and by itself, and the second would interrupt the tidying up.
    for each in _STOPS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
