"""Concurrent polls, in one process and in several: they claim one after the other, in order and at the usual cost."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore, claim_tokens
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.event_updates import EventUpdates
from inbox.store.dynamodb.layout import TENANTS, claim_token_key
from tests.dynamodb.conftest import (
    LEASE_UNTIL,
    NOW,
    Claim,
    both_claims,
    claim,
    claim_with_attempt,
    poll,
    put_events,
    warm_up,
)
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness
from tests.engines.wire import Fault, Wire
from tests.service import until

WAIT_SECONDS = 0.3


@contextmanager
def paused(store: DynamoDBStore, poll_to_pause: Callable[[], list[str]]) -> Iterator[Future[list[str]]]:
    """Starts a poll and pauses it between choosing and claiming its events. Resumes it when the context ends."""
    apply, updates = EventUpdates.apply, store.events._updates
    has_chosen, resume = threading.Event(), threading.Event()

    def apply_when_resumed(each: EventUpdates, *arguments: Any) -> Any:
        if each is updates and arguments[0] and not has_chosen.is_set():
            has_chosen.set()
            assert resume.wait(10)
        return apply(each, *arguments)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr(EventUpdates, "apply", apply_when_resumed)
        result = pool.submit(poll_to_pause)
        assert has_chosen.wait(10)
        try:
            yield result
        finally:
            resume.set()


@pytest.fixture(params=["same process", "other process"])
def second_store(request: pytest.FixtureRequest, store: DynamoDBStore, other_store: DynamoDBStore) -> DynamoDBStore:
    return store if request.param == "same process" else other_store


@pytest.fixture
def long_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens that do not expire while a test pauses a poll."""
    monkeypatch.setattr(claim_tokens, "TOKEN_MS", 4_000)


@both_claims
@pytest.mark.usefixtures("long_tokens")
def test_poll_does_not_skip_events_that_another_poll_is_about_to_claim(
    store: DynamoDBStore, second_store: DynamoDBStore, tenant: str, claim_in: Claim
) -> None:
    warm_up(store, tenant)
    events = put_events(store, tenant, 6)
    with ThreadPoolExecutor(1) as pool:
        with paused(store, lambda: claim_in(store, tenant, 3)) as first:
            second = pool.submit(claim, second_store, tenant, 3)
            assert not wait([second], WAIT_SECONDS).done
        assert (first.result(), second.result()) == (events[:3], events[3:])


@both_claims
@pytest.mark.usefixtures("long_tokens")
def test_poll_that_waits_too_long_fails_and_claims_nothing(
    store: DynamoDBStore,
    second_store: DynamoDBStore,
    tenant: str,
    claim_in: Claim,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = put_events(store, tenant, 4)
    of_another_tenant = put_events(store, tenant + "-2", 1)
    with paused(store, lambda: claim(store, tenant, 2)) as first:
        monkeypatch.setattr("inbox.store.dynamodb.connection.MAX_SECONDS", 0.1)
        with pytest.raises(StoreUnavailable, match="Other polls"):
            claim_in(second_store, tenant, 4)
        monkeypatch.undo()
        assert claim(store, tenant + "-2") == of_another_tenant
    assert first.result() == events[:2]
    assert claim(store, tenant) == events[2:]


@both_claims
@pytest.mark.usefixtures("long_tokens")
def test_lease_is_not_shorter_if_the_poll_had_to_wait(
    store: DynamoDBStore, second_store: DynamoDBStore, tenant: str, claim_in: Claim
) -> None:
    put_events(store, tenant, 4)
    attempt = "attempt-2" if claim_in is claim_with_attempt else None
    with ThreadPoolExecutor(1) as pool:
        with paused(store, lambda: claim_in(store, tenant, 2)):
            second = pool.submit(poll, second_store, tenant, 2, lease_until_ms=LEASE_UNTIL, attempt=attempt)
            assert not wait([second], WAIT_SECONDS).done
        leases = [event.lease for event in second.result()]
    assert len(leases) == 2
    assert all(lease is not None and lease.expires_at_ms > LEASE_UNTIL for lease in leases)


def test_poll_reads_the_index_again_if_another_process_has_claimed_meanwhile(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (store, other_store):
        each.events._claims._tokens.token_ms = 100
    warm_up(store, tenant)
    events = put_events(store, tenant, 60)
    find = type(store.events.claimable).find_for_claim
    taken: list[str] = []
    wire.reset()

    def find_before_others(self: Any, *arguments: Any) -> Any:
        found = find(self, *arguments)
        if self is store.events.claimable and not taken:
            taken.extend(claim(other_store, tenant, 25))
        return found

    monkeypatch.setattr(type(store.events.claimable), "find_for_claim", find_before_others)
    assert claim(store, tenant, 25) == events[25:50]
    assert wire.failed_conditions == 0


@pytest.mark.usefixtures("long_tokens")
def test_token_of_a_process_that_died_expires(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = put_events(store, tenant, 2)
    assert claim(other_store, tenant, 1) == events[:1]
    monkeypatch.setattr("inbox.store.dynamodb.connection.MAX_SECONDS", 0.1)
    with pytest.raises(StoreUnavailable, match="Other polls"):
        claim(store, tenant, now_ms=NOW + 3_000)
    assert claim(store, tenant, now_ms=NOW + 4_100) == events[1:]


@pytest.mark.usefixtures("long_tokens")
def test_token_of_a_machine_whose_clock_is_far_ahead_is_ignored(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str
) -> None:
    events = put_events(store, tenant, 2)
    assert claim(other_store, tenant, 1, now_ms=NOW + 600_000) == events[:1]
    assert claim(store, tenant) == events[1:]


def test_token_is_given_back_once_another_process_wants_it(
    harness: DynamoDBHarness, store: DynamoDBStore, other_store: DynamoDBStore, tenant: str
) -> None:
    events = put_events(store, tenant, 4)
    polled = [event_id for each in (store, other_store, store, other_store) for event_id in claim(each, tenant, 1)]
    assert polled == events

    def is_free() -> bool:
        token = harness.connection.get(TENANTS, claim_token_key(tenant, DEFAULT_INBOX))
        return token is not None and token["expires_at"] == {"N": "0"}

    until(is_free)


def test_process_that_polls_alone_pays_for_one_token(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    warm_up(store, tenant)
    events = put_events(store, tenant, 5)
    wire.reset()
    assert [claim(store, tenant, 1) for _ in events] == [[each] for each in events]
    # The token was written by the first poll of the process, and is renewed after a second.
    assert wire.calls["UpdateItem"] <= 1


def test_empty_poll_takes_no_token(harness: DynamoDBHarness, store: DynamoDBStore, tenant: str) -> None:
    assert claim(store, tenant) == []
    assert harness.connection.get(TENANTS, claim_token_key(tenant, DEFAULT_INBOX)) is None


def test_poll_returns_its_events_if_the_token_cannot_be_given_back(
    store: DynamoDBStore, other_store: DynamoDBStore, wire: Wire, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = put_events(store, tenant, 3)
    assert claim(store, tenant, 1) + claim(other_store, tenant, 1) == events[:2]
    monkeypatch.setattr(claim_tokens, "_TURN_SECONDS", -1)
    # The first write takes the token, the second one would give it back.
    wire.fail("UpdateItem", Fault.TIMEOUT_BEFORE, 3, after=1)
    assert claim(store, tenant, 1) == events[2:]
    assert wire.fault_count == 3


def test_process_that_loses_its_token_ends_the_page(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm_up(store, tenant)
    events = put_events(store, tenant, 60)
    apply = EventUpdates.apply
    others: list[str] = []

    def apply_slowly(updates: EventUpdates, *arguments: Any) -> Any:
        results = apply(updates, *arguments)
        if updates is store.events._updates and arguments[0] and not others:
            store.events._claims._tokens._states[tenant, DEFAULT_INBOX].valid_until = 0
            others.extend(claim(other_store, tenant, 5, now_ms=NOW + 10_000))
        return results

    monkeypatch.setattr(EventUpdates, "apply", apply_slowly)
    assert claim(store, tenant, 60) == events[:25]
    assert others == events[25:30]


@both_claims
def test_processes_that_poll_at_the_same_time_share_the_events_in_order(
    harness: DynamoDBHarness, tenant: str, claim_in: Claim
) -> None:
    """Each of four processes has its own connections. Writes are measured as updates, with their units."""
    stores = [DynamoDBStore(Connection(harness.prefix, 4), MAX_DELIVERIES) for _ in range(4)]
    wires = [Wire(store._connection) for store in stores]
    events = put_events(stores[0], tenant, 400)
    for wire in wires:
        wire.reset()
        wire.measures_statements = True

    def drain(store: DynamoDBStore) -> list[str]:
        polled: list[str] = []
        is_empty = False
        while not is_empty:
            now_ms = NOW + int((time.monotonic() - began) * 1000)
            attempt = f"{id(store)}-{len(polled)}" if claim_in is claim_with_attempt else None
            page = claim(store, tenant, 25, now_ms=now_ms, attempt=attempt)
            is_empty = not page
            polled += page
        return polled

    began = time.monotonic()
    with ThreadPoolExecutor(len(stores)) as pool:
        shares = list(pool.map(drain, stores))
    for store in stores:
        store.close()
    assert sorted(event_id for share in shares for event_id in share) == sorted(events)
    assert all(share == sorted(share, key=events.index) for share in shares)
    failed_conditions = sum(wire.failed_conditions for wire in wires)
    assert failed_conditions < 0.1 * len(events)
    if claim_in is claim:
        assert sum(wire.write_units for wire in wires) < 3.3 * len(events)


def test_poll_returns_its_events_if_no_thread_can_be_started(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = put_events(store, tenant, 3)
    assert claim(store, tenant, 1) + claim(other_store, tenant, 1) == events[:2]

    def refuse(*_: Any) -> Any:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Timer", refuse)
    assert claim(store, tenant, 1) == events[2:]
