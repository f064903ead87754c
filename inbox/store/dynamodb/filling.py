"""Filling a page with events, a group of entries at a time."""

import time
from collections.abc import Callable, Iterator
from itertools import islice

import structlog

from inbox.domain.events import Event, Page, PageSize
from inbox.store.dynamodb.event_states import Entry

Take = Callable[[list[Entry], list[Event]], None]

# Consumers hang up after 30 seconds, Zapier among them, and would never hear of what is marked delivered.
MAX_SECONDS = 10

_log = structlog.get_logger()


def fill(entries: Iterator[Entry], size: PageSize, at_a_time: int, take: Take, got: list[Event]) -> Page:
    """Goes on until the page is full, the entries end or time is up.

    `take` adds to `got` what it gets of those it is given.
    What was got is never given up for an error that comes later: it may be marked delivered already.
    """
    deadline = time.monotonic() + MAX_SECONDS
    try:
        while group := list(islice(fitting(entries, size, got), at_a_time)):
            take(group, got)
            if time.monotonic() > deadline:
                return Page(got, more=True)
        return Page(got, more=next(entries, None) is not None)
    except Exception as error:
        if not got:
            raise
        _log.warning("page cut short", cause=str(error), error=type(error).__name__)
        return Page(got, more=True)


def fitting(entries: Iterator[Entry], size: PageSize, got: list[Event]) -> Iterator[Entry]:
    """Always a first, and no further one once those before it are enough."""
    count, payload_bytes = len(got), sum(len(event.payload) for event in got)
    while count < size.events and payload_bytes < size.payload_bytes:
        entry = next(entries, None)
        if entry is None:
            return
        yield entry
        count += 1
        payload_bytes += entry.payload_bytes
