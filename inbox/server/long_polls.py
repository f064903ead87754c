"""Long polls: requests that found no event wait here, without a thread, until one may have arrived.

When an inbox may have an event, its waiting polls are run again, through the whole app: one at a time, the oldest
first, and the next one only if the one before found something. Otherwise one event would wake a thousand polls.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from wsgiref.types import WSGIEnvironment

import structlog

from inbox.auth.authenticator import Access
from inbox.domain.events import InboxKey, Page
from inbox.server.thread_pool import DaemonThreads
from inbox.services.arrivals import LONG_POLL, Arrivals
from inbox.store.interface import ArrivalWatch

_CHECK_KEYS_SECONDS = 5.0
_PAUSE_AFTER_FAILURE_SECONDS = 1.0
_NOTHING = Page([], more=False)
_log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class LongPoll:
    """A request that may wait, as seen by the event loop and by the app."""

    inbox_key: InboxKey
    deadline: float
    access: Access
    found_nothing: bool = False
    has_failed: bool = False
    client_is_gone: bool = False
    missed_arrival: bool = False
    """An event arrived while the app ran the poll, so that run may have missed it."""
    log_response: Callable[[], object] = lambda: None
    """Logs and counts the app's last response."""
    waiter: asyncio.Future[bool] | None = None

    def resume(self, *, runs_again: bool) -> bool:
        """Ends the wait. Returns False if the poll does not wait."""
        if self.waiter is None or self.waiter.done():
            return False
        self.waiter.set_result(runs_again)
        return True


class LongPolls:
    """Used in the event loop. Only `claim_for_long_poll` may be called by other threads."""

    def __init__(self, arrivals: Arrivals, is_allowed: Callable[[Access], bool]) -> None:
        self._loop = asyncio.get_running_loop()
        self._arrivals = arrivals
        self._is_allowed = is_allowed
        self._polls: dict[InboxKey, dict[LongPoll, None]] = {}
        """Oldest first. Each is waiting or being run by the app."""
        self._has_polls = asyncio.Event()
        self._inboxes: frozenset[InboxKey] | None = None
        """The keys of `_polls`, None after a change. Cached: the watch compares nothing if the object is the same."""
        self._tenants_with_events: set[str] = set()
        """Tenants for which this process has stored, released or replayed events since the last check."""
        self._is_stopping = False
        arrivals.listener = lambda inbox_key: self._loop.call_soon_threadsafe(self._handle_arrival, inbox_key)
        self._threads = DaemonThreads("long polls", 2)
        self._tasks = [self._loop.create_task(each) for each in (self._watch_arrivals(), self._check_keys())]

    # Called by the app's threads

    def claim_for_long_poll(
        self, environ: WSGIEnvironment, inbox_key: InboxKey, seconds: float, claim: Callable[[], Page], access: Access
    ) -> Page:
        """Returns the events that `claim` returns. If there are none, the server holds the response back."""
        poll: LongPoll | None = environ.get(LONG_POLL)
        if poll is None:
            poll = environ[LONG_POLL] = LongPoll(inbox_key, time.monotonic() + seconds, access)
            # Before `claim`: the loop then registers the poll before it learns of an event that `claim` missed.
            self._loop.call_soon_threadsafe(self._register, poll)
        poll.missed_arrival = False
        poll.has_failed = True
        page = _NOTHING if poll.client_is_gone else claim()
        poll.has_failed = False
        poll.found_nothing = not page.events
        return page

    # Called by connections

    async def wait(self, poll: LongPoll) -> bool:
        """Returns True if the poll is to be run again, False if its wait is over."""
        seconds_left = poll.deadline - time.monotonic()
        if self._is_stopping or poll.client_is_gone or seconds_left <= 0:
            return False
        if not poll.missed_arrival:
            self._arrivals.on_waiting_change(1)
            poll.waiter = self._loop.create_future()
            timer = self._loop.call_later(seconds_left, partial(poll.resume, runs_again=False))
            try:
                if not await poll.waiter:
                    return False
            finally:
                timer.cancel()
                poll.waiter = None
                self._arrivals.on_waiting_change(-1)
        return True

    def end(self, poll: LongPoll) -> None:
        """Removes a poll whose response is final or whose client is gone. May wake the next poll of the inbox."""
        polls = self._polls[poll.inbox_key]
        del polls[poll]
        if not polls:
            del self._polls[poll.inbox_key]
            self._inboxes = None
        if poll.found_nothing:
            poll.log_response()
        # Wakes the next poll if this one found events, since there may be more, or if its client left, since it may
        # have used up the wake-up. Not if the store has failed: all polls of the inbox would fail one after the other.
        if poll.client_is_gone or not (poll.found_nothing or poll.has_failed):
            self._wake(poll.inbox_key)

    def stop(self) -> None:
        """Ends all waits. Later polls do not wait."""
        self._is_stopping = True
        for task in self._tasks:
            task.cancel()
        for poll in self._all():
            poll.resume(runs_again=False)

    # Runs in the event loop

    def _register(self, poll: LongPoll) -> None:
        if poll.inbox_key not in self._polls:
            self._polls[poll.inbox_key] = {}
            self._inboxes = None
        self._polls[poll.inbox_key][poll] = None
        self._has_polls.set()

    def _all(self) -> list[LongPoll]:
        return [poll for polls in self._polls.values() for poll in polls]

    def _handle_arrival(self, inbox_key: InboxKey) -> None:
        if self._polls:
            # Named inboxes may have received copies, so the watch checks all inboxes of the tenant.
            self._tenants_with_events.add(inbox_key[0])
            self._wake(inbox_key)

    def _wake(self, inbox_key: InboxKey) -> None:
        """Resumes the oldest waiting poll of the inbox."""
        for poll in self._polls.get(inbox_key, ()):
            if poll.resume(runs_again=True):
                return
            poll.missed_arrival = True

    async def _watch_arrivals(self) -> None:
        watch = self._arrivals.watch()
        try:
            while True:
                self._inboxes = inboxes = self._inboxes or frozenset(self._polls)
                pause_seconds = await self._check(watch, inboxes)
                if inboxes:
                    await asyncio.sleep(pause_seconds)
                elif not self._polls:
                    self._has_polls.clear()
                    await self._has_polls.wait()
        finally:
            self._threads.run(watch.close)

    async def _check(self, watch: ArrivalWatch, inboxes: frozenset[InboxKey]) -> float:
        """Wakes polls of inboxes that may have events. Returns the seconds until the next check."""
        tenant_ids, self._tenants_with_events = self._tenants_with_events, set()

        def check() -> set[InboxKey]:
            watch.check_soon(tenant_ids)
            return watch.check(inboxes, self._arrivals.now_ms())

        try:
            for inbox_key in await self._threads.run(check):
                self._wake(inbox_key)
        except Exception as error:
            # The store may work again at the next check. Until then, only events of this process end waits.
            _log.warning("watching for events failed", error=type(error).__name__)
            return _PAUSE_AFTER_FAILURE_SECONDS
        return watch.interval_seconds

    async def _check_keys(self) -> None:
        """Runs polls again whose key is no longer accepted, so that the app refuses them."""
        while True:
            await asyncio.sleep(_CHECK_KEYS_SECONDS)
            accesses = {poll.access for poll in self._all()}
            try:
                revoked = await self._threads.run(partial(self._find_revoked, accesses))
            except Exception as error:
                _log.warning("checking the keys of waiting polls failed", error=type(error).__name__)
                continue
            for poll in self._all():
                if poll.access in revoked:
                    poll.resume(runs_again=True)

    def _find_revoked(self, accesses: set[Access]) -> set[Access]:
        return {access for access in accesses if not self._is_allowed(access)}
