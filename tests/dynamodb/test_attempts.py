"""Polls with an attempt id, when answers are lost and processes end."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, PageSize
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore
from tests.dynamodb.conftest import ALL_ATTEMPTS, ANY_SIZE, LATER, NOW, claim, fresh, have_polled_before
from tests.engines.wire import Fault, Wire

pytestmark = [
    pytest.mark.usefixtures("no_pauses"),
    pytest.mark.parametrize("lease_until_ms", [None, NOW + 60_000], ids=["consume", "lease"]),
]


def attempt(store: DynamoDBStore, tenant: str, lease_until_ms: int | None) -> list[str]:
    size = PageSize(60, ANY_SIZE)
    page = store.events.claim(tenant, DEFAULT_INBOX, size, NOW, lease_until_ms, "attempt-1")
    return [event.event_id for event in page.events]


@pytest.fixture
def events(store: DynamoDBStore, tenant: str) -> list[str]:
    have_polled_before(store, tenant)
    events = [fresh() for _ in range(60)]
    store.events.put(tenant, events, NOW, LATER)
    return [event.event_id for event in events]


@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.TIMEOUT_BEFORE, Fault.SERVER_ERROR_AFTER])
def test_a_poll_that_broke_off_is_taken_up_by_another_process(
    store: DynamoDBStore,
    other_store: DynamoDBStore,
    wire: Wire,
    tenant: str,
    events: list[str],
    lease_until_ms: int | None,
    fault: Fault,
    after: int,
) -> None:
    wire.fail("BatchExecuteStatement", fault, ALL_ATTEMPTS, after=after)
    with pytest.raises(StoreUnavailable):
        attempt(store, tenant, lease_until_ms)

    # Somebody else polls meanwhile, and gets what the first one did not get to.
    theirs = claim(other_store, tenant, 10)
    mine = attempt(other_store, tenant, lease_until_ms)
    assert mine == attempt(store, tenant, lease_until_ms)
    assert sorted(mine + theirs) == sorted(events)
    assert claim(store, tenant) == []


@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.CUT_AFTER, Fault.THROTTLED])
def test_writing_an_attempt_down_survives_a_lost_answer(
    store: DynamoDBStore, wire: Wire, tenant: str, events: list[str], lease_until_ms: int | None, fault: Fault
) -> None:
    wire.fail("PutItem", fault, 1)
    assert attempt(store, tenant, lease_until_ms) == events
    assert wire.fired == 1


def test_an_attempt_that_could_not_be_written_down_takes_nothing(
    store: DynamoDBStore, wire: Wire, tenant: str, events: list[str], lease_until_ms: int | None
) -> None:
    wire.fail("PutItem", Fault.TIMEOUT_BEFORE, ALL_ATTEMPTS)
    with pytest.raises(StoreUnavailable):
        attempt(store, tenant, lease_until_ms)
    assert claim(store, tenant) == events


Repeat = Callable[[], list[str]]


@pytest.fixture(params=["after", "at once"])
def repeat(
    request: pytest.FixtureRequest,
    other_store: DynamoDBStore,
    tenant: str,
    lease_until_ms: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Repeat]:
    """Repeats the poll, or lets one go on that has chosen the same events and comes second with writing them down."""
    if request.param == "after":
        yield lambda: attempt(other_store, tenant, lease_until_ms)
        return
    begin, has_chosen, may_begin = other_store.events._attempts._begin, threading.Event(), threading.Event()

    def come_second(*arguments: Any) -> Any:
        has_chosen.set()
        assert may_begin.wait(30)
        return begin(*arguments)

    monkeypatch.setattr(other_store.events._attempts, "_begin", come_second)
    request.getfixturevalue("events")
    with ThreadPoolExecutor(1) as pool:
        polling = pool.submit(attempt, other_store, tenant, lease_until_ms)
        assert has_chosen.wait(30)

        def go_on() -> list[str]:
            may_begin.set()
            return polling.result(30)

        yield go_on


def test_a_poll_that_was_repeated_while_it_was_at_work_takes_nothing_more(
    store: DynamoDBStore,
    other_store: DynamoDBStore,
    third_store: DynamoDBStore,
    tenant: str,
    events: list[str],
    lease_until_ms: int | None,
    repeat: Repeat,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take, later = store.events._attempts._claim, fresh()

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.undo()
        assert claim(third_store, tenant) == events
        # Its answer is the one that the client gets to see.
        assert repeat() == []
        other_store.events.put(tenant, [later], NOW, LATER)
        return take(*arguments)

    monkeypatch.setattr(store.events._attempts, "_claim", meanwhile)
    with pytest.raises(StoreUnavailable):
        attempt(store, tenant, lease_until_ms)
    assert attempt(store, tenant, lease_until_ms) == []
    assert claim(other_store, tenant) == [later.event_id]


def test_who_was_too_slow_for_the_first_events_gets_the_next(
    store: DynamoDBStore,
    other_store: DynamoDBStore,
    tenant: str,
    events: list[str],
    lease_until_ms: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = store.events._attempts._begin
    theirs: list[str] = []

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.undo()
        theirs.extend(claim(other_store, tenant, 25))
        return begin(*arguments)

    monkeypatch.setattr(store.events._attempts, "_begin", meanwhile)
    size = PageSize(20, ANY_SIZE)
    page = store.events.claim(tenant, DEFAULT_INBOX, size, NOW, lease_until_ms, "attempt-1")
    mine = [event.event_id for event in page.events]
    assert (theirs, mine, page.more) == (events[:25], events[25:45], True)
    assert attempt(other_store, tenant, lease_until_ms) == mine
