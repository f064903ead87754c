"""Long polls under a WSGI server of another project: each waiting poll blocks a thread."""

import time
from collections.abc import Callable

from inbox.domain.events import Page

_PAUSE_SECONDS = 0.2


def claim_or_wait(
    seconds: int,
    claim: Callable[[], Page],
    client_is_gone: Callable[[], bool],
    on_waiting_change: Callable[[int], object],
) -> Page:
    """Calls `claim` until it returns events, `seconds` have passed or the client is gone. Returns the last page.

    `on_waiting_change` is called with 1 when the poll starts to wait, and with -1 when it stops.
    """
    deadline = time.monotonic() + seconds
    page = claim()
    if page.events:
        return page
    on_waiting_change(1)
    try:
        while not page.events and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(_PAUSE_SECONDS, left))
            if client_is_gone():
                break
            page = claim()
    finally:
        on_waiting_change(-1)
    return page
