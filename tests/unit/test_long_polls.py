"""Which long polls are run again, when, and what ends them."""

from collections.abc import Callable, Collection, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from threading import Event as ThreadEvent
from typing import Any

import pytest

from inbox.arrivals import Arrivals
from inbox.events import Event, InboxKey, Page, Status
from inbox.server.app_threads import Answer
from inbox.server.long_polls import LongPolls
from tests.service import until

NOTHING = Page([], more=False)
SOMETHING = Page([Event("e", None, 1, Status.DELIVERED, 1, 1, b"{}")], more=False)
INBOX = ("acme", "default")
EMPTY_ANSWER = Answer(b"HTTP/1.1 200 OK\r\n", b"[]")


class Timer:
    def cancel(self) -> None:
        pass


class Loop:
    """Calls nothing by itself."""

    def __init__(self) -> None:
        self.timers: list[Callable[[], object]] = []

    def call_later(self, _seconds: float, callback: Callable[..., object], *args: Any) -> Timer:
        self.timers.append(lambda: callback(*args))
        return Timer()


class Watch:
    """Reports each inbox in `ready` once."""

    pause_seconds = 0.001

    def __init__(self) -> None:
        self.ready: set[InboxKey] = set()
        self.is_closed = False
        self.expected: set[InboxKey] = set()

    def look(self, waiting: AbstractSet[InboxKey], now_ms: int) -> set[InboxKey]:  # noqa: ARG002 - as it is called
        ready, self.ready = self.ready & waiting, self.ready - waiting
        return ready

    def expect(self, inboxes: Collection[InboxKey]) -> None:
        self.expected.update(inboxes)

    def close(self) -> None:
        self.is_closed = True


@dataclass
class Request:
    """A request as the server treats it, except that the test decides when the app runs."""

    polls: LongPolls
    inbox: InboxKey = INBOX
    is_allowed: bool = True
    is_gone: bool = False
    environ: dict[str, Any] = field(default_factory=dict)
    runs_again: ThreadEvent = field(default_factory=ThreadEvent)
    answers: list[Answer] = field(default_factory=list)

    def run(self, page: Page, seconds: float = 20) -> None:
        """Runs the app, which finds the page, and hands the outcome to the event loop."""
        self.take(page, seconds)
        self.hand_over()

    def take(self, page: Page, seconds: float = 20) -> None:
        self.runs_again.clear()
        self.polls.take_or_wait(self.environ, self.inbox, seconds, lambda: page, lambda: self.is_allowed)

    def hand_over(self) -> None:
        if self.is_gone:
            self.polls.forget(self.environ)
        elif poll := self.polls.waiting_poll(self.environ):
            self.polls.park(poll, EMPTY_ANSWER, self.answers.append, self.runs_again.set)

    @property
    def poll(self) -> Any:
        return self.environ["inbox.long_poll"]


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def counts() -> list[int]:
    return []


@pytest.fixture
def polls(loop: Loop, watch: Watch, counts: list[int]) -> Iterator[LongPolls]:
    polls = LongPolls(loop, Arrivals(lambda: watch, lambda: 0, counts.append))  # type: ignore[arg-type]
    yield polls
    polls.stop()
    until(lambda: watch.is_closed)


def test_event_of_this_process_wakes_poll_of_its_inbox(polls: LongPolls, watch: Watch) -> None:
    mine, named, other = Request(polls), Request(polls, ("acme", "crm")), Request(polls, ("globex", "default"))
    for request in (mine, named, other):
        request.run(NOTHING)
    polls.notice(INBOX)
    assert [each.runs_again.is_set() for each in (mine, named, other)] == [True, False, False]
    until(lambda: watch.expected == {INBOX, ("acme", "crm")})


def test_event_of_another_process_wakes_poll_of_its_inbox(polls: LongPolls, watch: Watch) -> None:
    mine, other = Request(polls), Request(polls, ("acme", "crm"))
    mine.run(NOTHING)
    other.run(NOTHING)
    watch.ready = {INBOX}
    assert mine.runs_again.wait(20)
    assert not other.runs_again.is_set()


def test_polls_of_one_inbox_are_woken_one_by_one_while_they_find_events(polls: LongPolls) -> None:
    first, second, third = requests = [Request(polls) for _ in range(3)]
    for request in requests:
        request.run(NOTHING)
    polls.wake(INBOX)
    assert [request.runs_again.is_set() for request in requests] == [True, False, False]
    first.run(SOMETHING)
    assert [request.runs_again.is_set() for request in requests] == [False, True, False]
    second.run(NOTHING)
    assert not third.runs_again.is_set()
    polls.wake(INBOX)
    assert third.runs_again.is_set()


def test_event_that_arrives_while_poll_is_running_is_not_missed(polls: LongPolls) -> None:
    request = Request(polls)
    request.take(NOTHING)
    polls.notice(INBOX)
    request.hand_over()
    assert request.runs_again.is_set()
    request.take(NOTHING)
    polls.notice(INBOX)
    request.hand_over()
    assert request.runs_again.is_set()
    request.run(NOTHING)
    assert not request.runs_again.is_set()


def test_held_answer_is_delivered_when_the_time_is_up(polls: LongPolls, loop: Loop, counts: list[int]) -> None:
    request = Request(polls)
    request.run(NOTHING)
    assert request.answers == []
    loop.timers[0]()
    assert request.answers == [EMPTY_ANSWER]
    assert counts == [1, -1]


def test_poll_that_is_running_when_its_time_is_up_is_answered_by_that_run(polls: LongPolls, loop: Loop) -> None:
    request = Request(polls)
    request.run(NOTHING)
    polls.wake(INBOX)
    loop.timers[0]()
    assert request.answers == []
    request.run(NOTHING)
    assert request.answers == [EMPTY_ANSWER]


def test_wake_for_a_client_that_is_gone_goes_to_the_next_poll(polls: LongPolls) -> None:
    gone, next_one = Request(polls), Request(polls)
    gone.run(NOTHING)
    next_one.run(NOTHING)
    polls.wake(INBOX)
    polls.drop(gone.poll)
    gone.is_gone = True
    gone.run(SOMETHING)
    assert (gone.answers, next_one.runs_again.is_set()) == ([], True)


def test_poll_whose_client_left_while_it_was_queued_takes_nothing(polls: LongPolls) -> None:
    request, next_one = Request(polls), Request(polls)
    request.run(NOTHING)
    next_one.run(NOTHING)
    polls.wake(INBOX)
    request.poll.client_is_gone = True
    polls.end(request.poll)
    request.run(SOMETHING)
    assert (request.answers, next_one.runs_again.is_set()) == ([EMPTY_ANSWER], True)


def test_poll_that_fails_passes_the_wake_up_on(polls: LongPolls) -> None:
    failing, next_one = Request(polls), Request(polls)
    failing.run(NOTHING)
    next_one.run(NOTHING)
    polls.wake(INBOX)
    # The app refused the request before it came to take events.
    failing.hand_over()
    assert next_one.runs_again.is_set()


def test_dropped_poll_is_not_woken(polls: LongPolls, counts: list[int]) -> None:
    request = Request(polls)
    request.run(NOTHING)
    polls.drop(request.poll)
    polls.wake(INBOX)
    assert not request.runs_again.is_set()
    assert counts == [1, -1]


def test_poll_whose_key_is_revoked_is_run_again(polls: LongPolls) -> None:
    request = Request(polls, is_allowed=False)
    request.run(NOTHING)
    assert request.runs_again.wait(20)


def test_stop_ends_polls_that_wait_and_those_that_would(polls: LongPolls) -> None:
    waiting, running = Request(polls), Request(polls)
    waiting.run(NOTHING)
    running.take(NOTHING)
    polls.stop()
    running.hand_over()
    assert (waiting.answers, running.answers) == ([EMPTY_ANSWER], [EMPTY_ANSWER])


def test_nothing_is_kept_of_polls_that_ended(polls: LongPolls) -> None:
    for request in (Request(polls) for _ in range(3)):
        request.run(NOTHING)
        polls.end(request.poll)
    Request(polls).run(SOMETHING)
    Request(polls, is_gone=True).run(NOTHING)
    assert (polls._tenants, polls._waiting) == ({}, set())


def test_failing_watch_is_retried(polls: LongPolls, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inbox.server.long_polls._PAUSE_AFTER_FAILURE_SECONDS", 0)
    failures = [RuntimeError(), RuntimeError()]
    look = watch.look

    def failing_look(waiting: AbstractSet[InboxKey], now_ms: int) -> set[InboxKey]:
        if failures:
            raise failures.pop()
        return look(waiting, now_ms)

    monkeypatch.setattr(watch, "look", failing_look)
    request = Request(polls)
    watch.ready = {INBOX}
    request.run(NOTHING)
    assert request.runs_again.wait(20)
