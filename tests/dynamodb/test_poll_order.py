"""Concurrent polls: events are delivered in order, and a poll that waits too long fails."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore, poll_queue
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.event_updates import EventUpdates
from inbox.store.dynamodb.poll_queue import PollQueues
from tests.contract.samples import ids
from tests.dynamodb.conftest import (
    LATER_S,
    LEASE_UNTIL,
    NOW,
    Claim,
    both_claims,
    claim,
    claim_with_attempt,
    new_event,
    poll,
    put_events,
    warm_up,
)
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


@both_claims
def test_poll_does_not_skip_events_that_another_process_may_still_claim(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str, claim_in: Claim
) -> None:
    events = put_events(store, tenant, 6)
    with ThreadPoolExecutor(1) as pool:
        with paused(store, lambda: claim_in(store, tenant, 3)) as first:
            second = pool.submit(claim, store, tenant, 3)
            assert not wait([second], WAIT_SECONDS).done
            assert claim(other_store, tenant, 2) == events[:2]
        assert sorted(first.result() + second.result(), key=events.index) == events[2:]
        assert events[2] in first.result()


@both_claims
def test_poll_that_waits_too_long_fails_and_claims_nothing(
    store: DynamoDBStore, tenant: str, claim_in: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = put_events(store, tenant, 4)
    of_another_tenant = put_events(store, tenant + "-2", 1)
    monkeypatch.setattr(poll_queue, "MAX_WAIT_SECONDS", 0.01)
    with paused(store, lambda: claim(store, tenant, 2)) as first:
        with pytest.raises(StoreUnavailable, match="Other polls"):
            claim_in(store, tenant, 4)
        assert claim(store, tenant + "-2") == of_another_tenant
    assert first.result() == events[:2]
    assert claim(store, tenant) == events[2:]


@both_claims
def test_lease_is_not_shorter_if_the_poll_had_to_wait(store: DynamoDBStore, tenant: str, claim_in: Claim) -> None:
    put_events(store, tenant, 4)
    attempt = "attempt-2" if claim_in is claim_with_attempt else None
    with ThreadPoolExecutor(1) as pool:
        with paused(store, lambda: claim_in(store, tenant, 2)):
            second = pool.submit(poll, store, tenant, 2, lease_until_ms=LEASE_UNTIL, attempt=attempt)
            assert not wait([second], WAIT_SECONDS).done
        leases = [event.lease for event in second.result()]
    assert len(leases) == 2
    assert all(lease is not None and lease.expires_at_ms > LEASE_UNTIL for lease in leases)


def test_poll_with_several_turns_lets_other_polls_run_between_them() -> None:
    queues, order = PollQueues(), list[str]()
    first_poll, second_poll = queues.turn(("acme", DEFAULT_INBOX)), queues.turn(("acme", DEFAULT_INBOX))

    def take_turn() -> None:
        with second_poll:
            order.append("second_poll")

    with ThreadPoolExecutor(1) as pool:
        with first_poll:
            waiting = pool.submit(take_turn)
            until(lambda: second_poll in second_poll._queue.turns)
        with first_poll:
            order.append("first_poll")
        waiting.result()
    assert order == ["second_poll", "first_poll"]


@both_claims
def test_event_that_is_indexed_late_is_not_overtaken(
    store: DynamoDBStore,
    other_store: DynamoDBStore,
    third_store: DynamoDBStore,
    tenant: str,
    claim_in: Claim,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warm_up(store, tenant)
    warm_up(other_store, tenant)
    put_events(other_store, tenant, 24)
    late, sent_after_it = new_event(), new_event()
    apply = EventUpdates.apply
    claim_sizes: list[int] = []

    def apply_after_others(updates: EventUpdates, *arguments: Any) -> Any:
        if updates is not store.events._updates:
            return apply(updates, *arguments)
        claim_sizes.append(len(arguments[0]))
        if arguments[0] and sum(claim_sizes) == 13:
            # Another poll claims all events that this poll has read.
            claim(other_store, tenant, 23)
            # An event appears in the index before all others, and then another one is sent.
            third_store.events.put(tenant, [late], NOW - 1000, LATER_S)
            other_store.events.put(tenant, [sent_after_it], NOW, LATER_S)
        return apply(updates, *arguments)

    monkeypatch.setattr(EventUpdates, "apply", apply_after_others)
    delivered = claim_in(store, tenant, 13) + claim(store, tenant, 100)
    expected = ids([late, sent_after_it])
    assert [event_id for event_id in delivered if event_id in expected] == expected


def test_page_is_in_order_within_a_millisecond(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm_up(store, tenant)
    warm_up(other_store, tenant)
    events = put_events(other_store, tenant, 26)
    apply, call = EventUpdates.apply, Connection.call
    not_indexed = {events[10]}

    def apply_after_others(updates: EventUpdates, *arguments: Any) -> Any:
        if updates is store.events._updates and arguments[0] and not_indexed:
            assert claim(other_store, tenant, 11) == events[:10] + events[11:12]
            not_indexed.clear()
        return apply(updates, *arguments)

    def call_on_lagging_index(connection: Connection, operation: str, **parameters: Any) -> Any:
        response = call(connection, operation, **parameters)
        if operation == "query":
            response["Items"] = [item for item in response["Items"] if item["sk"]["S"] not in not_indexed]
        return response

    monkeypatch.setattr(EventUpdates, "apply", apply_after_others)
    monkeypatch.setattr(Connection, "call", call_on_lagging_index)
    assert claim(store, tenant, 13) == [events[10], *events[12:24]]
