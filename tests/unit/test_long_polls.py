"""When long polls run again, and what ends them."""

import asyncio
from collections.abc import AsyncIterator, Collection
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from inbox.auth.authenticator import Access
from inbox.domain.events import Event, InboxKey, Page, Status
from inbox.domain.keys import Scope
from inbox.errors import StoreUnavailable
from inbox.server import long_polls
from inbox.server.long_polls import LongPoll, LongPolls
from inbox.services.arrivals import Arrivals
from tests.unit.event_loop import in_event_loop, until

NO_EVENTS = Page([], more=False)
ONE_EVENT = Page([Event("e", None, 1, Status.DELIVERED, 1, 1, b"{}")], more=False)
DEFAULT, NAMED, OTHER_TENANT = ("acme", "default"), ("acme", "crm"), ("globex", "default")
ACCESS = Access("hash", (Scope.INBOX_READ,))


class FakeWatch:
    """An arrival watch that reports each inbox in `ready` once."""

    interval_seconds = 0.001

    def __init__(self) -> None:
        self.ready: set[InboxKey] = set()
        self.tenants_with_events: set[str] = set()
        self.failures: list[Exception] = []
        self.is_closed = False
        self.waiting: AbstractSet[InboxKey] | None = None

    def check(self, waiting: AbstractSet[InboxKey], now_ms: int) -> set[InboxKey]:  # noqa: ARG002
        self.waiting = waiting
        if self.failures:
            raise self.failures.pop()
        found = self.ready & waiting
        self.ready -= found
        return found

    def check_soon(self, tenant_ids: Collection[str]) -> None:
        self.tenants_with_events.update(tenant_ids)

    def close(self) -> None:
        self.is_closed = True


@dataclass
class Service:
    polls: LongPolls
    arrivals: Arrivals
    watch: FakeWatch
    waiting_changes: list[int]
    revoked: set[Access]
    tasks: list[asyncio.Task[None]]


@asynccontextmanager
async def start_service() -> AsyncIterator[Service]:
    watch, waiting_changes, revoked = FakeWatch(), list[int](), set[Access]()
    arrivals = Arrivals(lambda: watch, lambda: 0, waiting_changes.append)
    polls = LongPolls(arrivals, lambda access: access not in revoked)
    tasks = list[asyncio.Task[None]]()
    try:
        yield Service(polls, arrivals, watch, waiting_changes, revoked, tasks)
    finally:
        polls.stop()
        await asyncio.gather(*tasks)
        await until(lambda: watch.is_closed)


@dataclass
class Request:
    """A request that runs the app and waits like a connection. The app returns `found_page`."""

    service: Service
    inbox: InboxKey = DEFAULT
    found_page: Page = NO_EVENTS
    environ: dict[str, Any] = field(default_factory=dict)
    run_count: int = 0
    log_count: int = 0

    async def start(self, wait_seconds: float = 20) -> "Request":
        """Runs the app once, and lets the poll wait if the app found no events. Returns the request."""
        self.task = asyncio.create_task(self._serve(wait_seconds))
        self.service.tasks.append(self.task)
        await settle()
        return self

    async def _serve(self, wait_seconds: float) -> None:
        self.run(wait_seconds)
        await asyncio.sleep(0)
        try:
            while self.poll.found_nothing and await self.service.polls.wait(self.poll):
                self.run(wait_seconds)
        finally:
            self.service.polls.end(self.poll)

    def run(self, wait_seconds: float) -> None:
        self.run_count += 1
        self.service.polls.claim_for_long_poll(self.environ, self.inbox, wait_seconds, lambda: self.found_page, ACCESS)
        self.poll.log_response = self.log

    def log(self) -> None:
        self.log_count += 1

    def disconnect(self) -> None:
        self.poll.client_is_gone = True
        self.poll.resume(runs_again=False)

    @property
    def poll(self) -> LongPoll:
        poll: LongPoll = self.environ["inbox.long_poll"]
        return poll

    @property
    def is_done(self) -> bool:
        return self.task.done()


async def settle() -> None:
    """Runs all callbacks that are ready."""
    for _ in range(10):
        await asyncio.sleep(0)


@in_event_loop
async def test_event_of_this_process_wakes_poll_of_its_inbox() -> None:
    async with start_service() as service:
        default, named, other = [await Request(service, inbox).start() for inbox in (DEFAULT, NAMED, OTHER_TENANT)]
        service.arrivals.notify(*DEFAULT)
        await settle()
        assert [each.run_count for each in (default, named, other)] == [2, 1, 1]
        await until(lambda: service.watch.tenants_with_events == {"acme"})


@in_event_loop
async def test_event_of_another_process_wakes_poll_of_its_inbox() -> None:
    async with start_service() as service:
        default, other = [await Request(service, inbox).start() for inbox in (DEFAULT, NAMED)]
        service.watch.ready.add(DEFAULT)
        await until(lambda: default.run_count == 2)
        assert other.run_count == 1


@in_event_loop
async def test_polls_of_one_inbox_are_woken_one_by_one_while_they_find_events() -> None:
    async with start_service() as service:
        first, second, third = requests = [await Request(service).start() for _ in range(3)]
        first.found_page = ONE_EVENT
        service.arrivals.notify(*DEFAULT)
        await settle()
        assert [request.run_count for request in requests] == [2, 2, 1]
        assert first.is_done
        # A poll that finds no event keeps its place: the second is now the first in line.
        second.found_page = ONE_EVENT
        service.arrivals.notify(*DEFAULT)
        await settle()
        assert (second.is_done, third.run_count) == (True, 2)


@in_event_loop
async def test_event_that_arrives_while_poll_is_running_is_not_missed() -> None:
    async with start_service() as service:
        request = Request(service)
        request.run(20)
        # Another thread stores the event after the poll has looked, but before it waits.
        service.arrivals.notify(*DEFAULT)
        await settle()
        assert await service.polls.wait(request.poll)
        request.run(20)
        waiting = asyncio.create_task(service.polls.wait(request.poll))
        await settle()
        assert not waiting.done()


@in_event_loop
async def test_poll_ends_and_is_logged_at_its_deadline() -> None:
    async with start_service() as service:
        request = await Request(service).start(0.5)
        await request.task
        assert (request.run_count, request.log_count, service.waiting_changes) == (1, 1, [1, -1])


@in_event_loop
async def test_poll_whose_client_disconnects_is_ended_and_not_woken() -> None:
    async with start_service() as service:
        request = await Request(service).start()
        request.disconnect()
        service.arrivals.notify(*DEFAULT)
        await request.task
        assert (request.run_count, request.log_count, service.waiting_changes) == (1, 1, [1, -1])


@in_event_loop
async def test_wake_up_of_a_client_that_disconnected_wakes_the_next_poll() -> None:
    async with start_service() as service:
        gone, next_poll = await Request(service).start(), await Request(service).start()
        gone.found_page = ONE_EVENT
        gone.poll.resume(runs_again=True)
        gone.poll.client_is_gone = True
        await settle()
        assert (gone.run_count, gone.poll.found_nothing, gone.is_done, next_poll.run_count) == (2, True, True, 2)


@in_event_loop
async def test_poll_that_the_app_refuses_wakes_the_next_poll() -> None:
    async with start_service() as service:
        refused, next_poll = await Request(service).start(), await Request(service).start()

        def refuse(_wait_seconds: float) -> None:
            refused.poll.found_nothing = False

        refused.run = refuse  # type: ignore[assignment, method-assign]
        service.arrivals.notify(*DEFAULT)
        await settle()
        assert (refused.is_done, next_poll.run_count) == (True, 2)


@in_event_loop
async def test_poll_that_fails_wakes_no_other_poll() -> None:
    async with start_service() as service:
        failing, next_poll = await Request(service).start(), await Request(service).start()

        def fail() -> Page:
            raise StoreUnavailable

        def run(wait_seconds: float) -> None:
            failing.poll.found_nothing = False
            with suppress(StoreUnavailable):
                service.polls.claim_for_long_poll(failing.environ, DEFAULT, wait_seconds, fail, ACCESS)

        failing.run = run  # type: ignore[method-assign]
        service.arrivals.notify(*DEFAULT)
        await settle()
        assert (failing.is_done, next_poll.run_count) == (True, 1)


@in_event_loop
async def test_watch_is_notified_when_the_last_poll_ends() -> None:
    async with start_service() as service:
        request = await Request(service).start()
        await until(lambda: service.watch.waiting == {DEFAULT})
        request.disconnect()
        await until(lambda: service.watch.waiting == set())


@in_event_loop
async def test_poll_whose_key_is_revoked_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_polls, "_CHECK_KEYS_SECONDS", 0.001)
    async with start_service() as service:
        request = await Request(service).start()
        service.revoked.add(ACCESS)
        await until(lambda: request.run_count >= 2)


@in_event_loop
async def test_stop_ends_waiting_polls_and_prevents_new_waits() -> None:
    async with start_service() as service:
        waiting, running = await Request(service).start(), Request(service)
        service.polls.stop()
        await waiting.task
        await (await running.start()).task
        assert (waiting.run_count, running.run_count) == (1, 1)


@in_event_loop
async def test_ended_polls_leave_no_state() -> None:
    async with start_service() as service:
        for request in [await Request(service).start() for _ in range(3)]:
            request.disconnect()
        await Request(service, found_page=ONE_EVENT).start()
        await settle()
        assert service.polls._polls == {}


@in_event_loop
async def test_failing_watch_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_polls, "_PAUSE_AFTER_FAILURE_SECONDS", 0)
    async with start_service() as service:
        service.watch.failures = [RuntimeError(), RuntimeError()]
        request = await Request(service).start()
        service.watch.ready.add(DEFAULT)
        await until(lambda: request.run_count == 2)
