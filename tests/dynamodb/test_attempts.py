"""Polls with an attempt ID: lost responses, killed processes, and clients that repeat a poll while it runs."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, PageSize
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore
from tests.contract.samples import ids
from tests.dynamodb.conftest import BOTOCORE_ATTEMPTS, LEASE_UNTIL, NOW, PAGE_BYTES, claim, put_events, warm_up
from tests.engines.wire import Fault, Wire

pytestmark = [
    pytest.mark.usefixtures("no_pauses"),
    pytest.mark.parametrize("lease_until_ms", [None, LEASE_UNTIL], ids=["consume", "lease"]),
]


def poll_with_attempt(store: DynamoDBStore, tenant: str, lease_until_ms: int | None) -> list[str]:
    return claim(store, tenant, 60, lease_until_ms=lease_until_ms, attempt="attempt-1")


@pytest.fixture
def events(store: DynamoDBStore, tenant: str) -> list[str]:
    warm_up(store, tenant)
    return put_events(store, tenant, 60)


@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.TIMEOUT_BEFORE, Fault.SERVER_ERROR_AFTER])
def test_another_process_resumes_an_interrupted_poll(
    store: DynamoDBStore,
    other_store: DynamoDBStore,
    wire: Wire,
    tenant: str,
    events: list[str],
    lease_until_ms: int | None,
    fault: Fault,
    after: int,
) -> None:
    wire.fail("BatchExecuteStatement", fault, BOTOCORE_ATTEMPTS, after=after)
    with pytest.raises(StoreUnavailable):
        poll_with_attempt(store, tenant, lease_until_ms)

    # Another poll claims events that the interrupted one has not claimed.
    others = claim(other_store, tenant, 10)
    resumed = poll_with_attempt(other_store, tenant, lease_until_ms)
    assert resumed == poll_with_attempt(store, tenant, lease_until_ms)
    assert sorted(resumed + others) == sorted(events)
    assert claim(store, tenant) == []


@pytest.mark.parametrize("fault", [Fault.TIMEOUT_AFTER, Fault.CUT_AFTER, Fault.THROTTLED])
def test_writing_an_attempt_survives_a_lost_response(
    store: DynamoDBStore, wire: Wire, tenant: str, events: list[str], lease_until_ms: int | None, fault: Fault
) -> None:
    wire.fail("PutItem", fault, 1)
    assert poll_with_attempt(store, tenant, lease_until_ms) == events
    assert wire.fault_count == 1


def test_attempt_that_cannot_be_written_claims_nothing(
    store: DynamoDBStore, wire: Wire, tenant: str, events: list[str], lease_until_ms: int | None
) -> None:
    wire.fail("PutItem", Fault.TIMEOUT_BEFORE, BOTOCORE_ATTEMPTS)
    with pytest.raises(StoreUnavailable):
        poll_with_attempt(store, tenant, lease_until_ms)
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
    """A function that repeats the poll, or resumes a poll that chose the same events but writes its attempt second."""
    if request.param == "after":
        yield lambda: poll_with_attempt(other_store, tenant, lease_until_ms)
        return
    begin, has_chosen, may_begin = other_store.events._attempts._begin, threading.Event(), threading.Event()

    def begin_second(*arguments: Any) -> Any:
        has_chosen.set()
        assert may_begin.wait(30)
        return begin(*arguments)

    monkeypatch.setattr(other_store.events._attempts, "_begin", begin_second)
    request.getfixturevalue("events")
    with ThreadPoolExecutor(1) as pool:
        polling = pool.submit(poll_with_attempt, other_store, tenant, lease_until_ms)
        assert has_chosen.wait(30)

        def resume() -> list[str]:
            may_begin.set()
            return polling.result(30)

        yield resume


def test_poll_that_was_repeated_while_running_claims_nothing_else(
    store: DynamoDBStore,
    other_store: DynamoDBStore,
    third_store: DynamoDBStore,
    tenant: str,
    events: list[str],
    lease_until_ms: int | None,
    repeat: Repeat,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claim_chosen, later = store.events._attempts._claim, list[str]()

    def repeat_first(*arguments: Any) -> Any:
        monkeypatch.undo()
        assert claim(third_store, tenant) == events
        # The client receives the response of the repeated poll.
        assert repeat() == []
        later.extend(put_events(other_store, tenant, 1))
        return claim_chosen(*arguments)

    monkeypatch.setattr(store.events._attempts, "_claim", repeat_first)
    with pytest.raises(StoreUnavailable):
        poll_with_attempt(store, tenant, lease_until_ms)
    assert poll_with_attempt(store, tenant, lease_until_ms) == []
    assert claim(other_store, tenant) == later


def test_poll_chooses_again_if_another_poll_claimed_its_events(
    store: DynamoDBStore,
    other_store: DynamoDBStore,
    tenant: str,
    events: list[str],
    lease_until_ms: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = store.events._attempts._begin
    others: list[str] = []

    def claim_first(*arguments: Any) -> Any:
        monkeypatch.undo()
        others.extend(claim(other_store, tenant, 25))
        return begin(*arguments)

    monkeypatch.setattr(store.events._attempts, "_begin", claim_first)
    page = store.events.claim(tenant, DEFAULT_INBOX, PageSize(20, PAGE_BYTES), NOW, lease_until_ms, "attempt-1")
    assert (others, ids(page.events), page.more) == (events[:25], events[25:45], True)
    assert poll_with_attempt(other_store, tenant, lease_until_ms) == ids(page.events)
