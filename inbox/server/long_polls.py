"""Long polls: requests that found no event wait here, without a thread, until one may have arrived.

A poll that waits is run again, through the whole app, when its inbox may have an event. The polls of an inbox are run
one at a time, in the order in which they came: the next one only if the one before found something. Otherwise one
event would wake a thousand polls.
"""

import asyncio
import threading
import time
from collections.abc import Callable

import structlog

from inbox.arrivals import Arrivals
from inbox.events import InboxKey, Page
from inbox.server.app_threads import Answer
from inbox.server.request_heads import Environ
from inbox.waiting import LONG_POLL

# Pause between two rounds of checks. Each look checks only a few keys, so that thousands of them do not hold up the
# requests.
_CHECK_KEYS_SECONDS = 2.0
_KEYS_PER_LOOK = 20
_PAUSE_AFTER_FAILURE_SECONDS = 1.0
_NOTHING = Page([], more=False)
_log = structlog.get_logger()


class LongPoll:
    """A request for events of one inbox."""

    def __init__(self, inbox_key: InboxKey, seconds: float, is_allowed: Callable[[], bool]) -> None:
        self.inbox_key = inbox_key
        self.deadline = time.monotonic() + seconds
        self.is_allowed = is_allowed
        """Returns True if the key of the request still has its scopes."""
        self.found_nothing = False
        self.client_is_gone = False
        self.log_answer: Callable[[], object] = lambda: None
        """Logs and counts the answer that the app gave last."""
        self.timer: asyncio.TimerHandle | None = None
        # Set when it is parked.
        self.answer: Answer
        self.deliver: Callable[[Answer], object]
        self.run_again: Callable[[], object]


class _Inbox:
    """The polls of one inbox."""

    def __init__(self) -> None:
        # In the order of their arrival.
        self.parked: dict[LongPoll, None] = {}
        self.running = 0
        """How many polls the app works on, or are about to be parked."""
        self.missed_arrival = False
        """An event arrived while polls were running, and may have come too late for them."""


class LongPolls:
    """Thread-safe. The app calls `take_or_wait`; the event loop parks and ends polls."""

    def __init__(self, loop: asyncio.AbstractEventLoop, arrivals: Arrivals) -> None:
        self._loop = loop
        self._arrivals = arrivals
        self._mutex = threading.Lock()
        self._tenants: dict[str, dict[str, _Inbox]] = {}
        self._waiting: set[InboxKey] = set()
        """Inboxes with parked polls."""
        self._waiting_snapshot: frozenset[InboxKey] | None = None
        self._expected: set[InboxKey] = set()
        """Inboxes that may have got events of this process since the last look."""
        self._has_waiting = threading.Event()
        self._is_stopping = False
        arrivals.listener = self.notice
        threading.Thread(target=self._watch, name="arrivals", daemon=True).start()

    # Called by the app

    def take_or_wait(
        self,
        environ: Environ,
        inbox_key: InboxKey,
        seconds: float,
        take: Callable[[], Page],
        is_allowed: Callable[[], bool],
    ) -> Page:
        """Returns what `take` finds. If that is nothing, the server holds the answer back."""
        poll: LongPoll | None = environ.get(LONG_POLL)
        if poll is None:
            poll = environ[LONG_POLL] = LongPoll(inbox_key, seconds, is_allowed)
            with self._mutex:
                # Before `take`: an event that comes after it must find the poll here.
                self._inbox(inbox_key).running += 1
        page = _NOTHING if poll.client_is_gone else take()
        poll.found_nothing = not page.events
        return page

    # Called when events may have arrived

    def notice(self, inbox_key: InboxKey) -> None:
        """Called when this process has stored, released or replayed events.

        Which named inboxes got copies of new events is not known here, so the watch is told to look for them.
        """
        tenant_id, _ = inbox_key
        if tenant_id in self._tenants:
            with self._mutex:
                self._expected.update((tenant_id, name) for name in self._tenants.get(tenant_id, ()))
            self.wake(inbox_key)

    def wake(self, inbox_key: InboxKey) -> None:
        """Runs the first of the polls that wait for the inbox again."""
        with self._mutex:
            inbox = self._find(inbox_key)
            if inbox is None:
                return
            if not inbox.parked:
                inbox.missed_arrival = True
                return
            poll = self._unpark(inbox, next(iter(inbox.parked)))
        poll.run_again()

    # Called by the event loop

    def waiting_poll(self, environ: Environ) -> LongPoll | None:
        """Returns the poll of a request whose answer is held back. Any other request has its final answer now."""
        poll: LongPoll | None = environ.get(LONG_POLL)
        if poll is None or poll.found_nothing:
            return poll
        self._leave(poll)
        self.wake(poll.inbox_key)
        return None

    def forget(self, environ: Environ) -> None:
        """Called instead of `waiting_poll` if the client is gone."""
        if poll := environ.get(LONG_POLL):
            self._leave(poll)
            self.wake(poll.inbox_key)
            if poll.found_nothing:
                poll.log_answer()

    def park(
        self, poll: LongPoll, answer: Answer, deliver: Callable[[Answer], object], run_again: Callable[[], object]
    ) -> None:
        """Holds `answer` back until the poll is run again, or its time is up."""
        poll.answer, poll.deliver, poll.run_again = answer, deliver, run_again
        seconds_left = poll.deadline - time.monotonic()
        if self._is_stopping or poll.client_is_gone or seconds_left <= 0:
            self._finish(poll)
            self.wake(poll.inbox_key)
            return
        if poll.timer is None:
            poll.timer = self._loop.call_later(seconds_left, self.end, poll)
            self._arrivals.on_waiting_change(1)
        with self._mutex:
            inbox = self._inbox(poll.inbox_key)
            runs_again, inbox.missed_arrival = inbox.missed_arrival, False
            if not runs_again:
                inbox.running -= 1
                inbox.parked[poll] = None
                self._waiting.add(poll.inbox_key)
                self._waiting_snapshot = None
                self._has_waiting.set()
        if runs_again:
            poll.found_nothing = False
            poll.run_again()

    def end(self, poll: LongPoll) -> None:
        """Delivers the answer that was held back. A poll that is just run again is answered after that."""
        poll.deadline = 0.0
        if self._take_out(poll):
            self._finish(poll)

    def drop(self, poll: LongPoll) -> None:
        """Forgets a poll whose client is gone."""
        poll.client_is_gone = True
        if self._take_out(poll):
            self._leave(poll)
            poll.log_answer()

    def stop(self) -> None:
        """Ends all polls, also those that are still to be parked, and the watch."""
        self._is_stopping = True
        self._has_waiting.set()
        for poll in self._parked():
            self.end(poll)

    def _finish(self, poll: LongPoll) -> None:
        self._leave(poll)
        poll.log_answer()
        poll.deliver(poll.answer)

    def _leave(self, poll: LongPoll) -> None:
        if poll.timer is not None:
            poll.timer.cancel()
            self._arrivals.on_waiting_change(-1)
        with self._mutex:
            inbox = self._inbox(poll.inbox_key)
            inbox.running -= 1
            if not inbox.running and not inbox.parked:
                tenant_id, name = poll.inbox_key
                del self._tenants[tenant_id][name]
                if not self._tenants[tenant_id]:
                    del self._tenants[tenant_id]

    def _take_out(self, poll: LongPoll) -> bool:
        """Returns True if the poll was parked. It counts as running then."""
        with self._mutex:
            inbox = self._find(poll.inbox_key)
            if inbox is None or poll not in inbox.parked:
                return False
            self._unpark(inbox, poll)
            return True

    def _snapshot(self) -> frozenset[InboxKey]:
        """Returns the inboxes with parked polls: the same object until they change, which saves comparing them."""
        with self._mutex:
            if self._waiting_snapshot is None:
                self._waiting_snapshot = frozenset(self._waiting)
            return self._waiting_snapshot

    def _parked(self) -> list[LongPoll]:
        with self._mutex:
            return [poll for key in self._waiting for poll in self._inbox(key).parked]

    # Called with the mutex held

    def _find(self, inbox_key: InboxKey) -> _Inbox | None:
        return self._tenants.get(inbox_key[0], {}).get(inbox_key[1])

    def _inbox(self, inbox_key: InboxKey) -> _Inbox:
        return self._tenants.setdefault(inbox_key[0], {}).setdefault(inbox_key[1], _Inbox())

    def _unpark(self, inbox: _Inbox, poll: LongPoll) -> LongPoll:
        del inbox.parked[poll]
        inbox.running += 1
        poll.found_nothing = False
        if not inbox.parked:
            self._waiting.discard(poll.inbox_key)
            self._waiting_snapshot = None
            if not self._waiting and not self._is_stopping:
                self._has_waiting.clear()
        return poll

    # The thread that watches the store

    def _watch(self) -> None:
        watch = self._arrivals.watch()
        unchecked: list[LongPoll] = []
        next_round = 0.0
        while self._has_waiting.wait() and not self._is_stopping:
            try:
                with self._mutex:
                    expected, self._expected = self._expected, set()
                watch.expect(expected)
                for inbox_key in watch.look(self._snapshot(), self._arrivals.now_ms()):
                    self.wake(inbox_key)
                if not unchecked and time.monotonic() >= next_round:
                    unchecked, next_round = self._parked(), time.monotonic() + _CHECK_KEYS_SECONDS
                for poll in unchecked[-_KEYS_PER_LOOK:]:
                    # The app refuses a poll whose key was revoked meanwhile.
                    if not poll.is_allowed() and self._take_out(poll):
                        poll.run_again()
                del unchecked[-_KEYS_PER_LOOK:]
            except Exception as error:
                # The store may be back at the next look. Meanwhile polls wait for events of this process.
                _log.warning("watching for events failed", error=type(error).__name__)
                time.sleep(_PAUSE_AFTER_FAILURE_SECONDS)
            time.sleep(watch.pause_seconds)
        watch.close()
