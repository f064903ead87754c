"""Polls that run side by side in one process: none overtakes another, and none waits without end."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, PageSize
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore, claims
from inbox.store.dynamodb.claims import PollQueues
from inbox.store.dynamodb.event_states import EventUpdates
from tests.dynamodb.conftest import ANY_SIZE, NOW, Claim, claim, each_claim, filled, repeatable_claim
from tests.service import until

IN_VAIN_SECONDS = 0.3


@contextmanager
def held_up(store: DynamoDBStore, claiming: Callable[[], list[str]]) -> Iterator[Future[list[str]]]:
    """A poll that has chosen its events, and takes them at the end of this."""
    make, events = EventUpdates.apply, store.events._updates
    has_come, go_on = threading.Event(), threading.Event()

    def make_late(changes: EventUpdates, *arguments: Any) -> Any:
        if changes is events and arguments[0] and not has_come.is_set():
            has_come.set()
            assert go_on.wait(10)
        return make(changes, *arguments)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr(EventUpdates, "apply", make_late)
        poll = pool.submit(claiming)
        assert has_come.wait(10)
        try:
            yield poll
        finally:
            go_on.set()


@each_claim
def test_a_poll_does_not_pass_by_what_another_process_may_still_get(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str, claim_in: Claim
) -> None:
    ids = filled(store, tenant, 6)
    with ThreadPoolExecutor(1) as pool:
        with held_up(store, lambda: claim_in(store, tenant, 3)) as first:
            second = pool.submit(claim, store, tenant, 3)
            assert not wait([second], IN_VAIN_SECONDS).done
            assert claim(other_store, tenant, 2) == ids[:2]
        assert sorted(first.result() + second.result(), key=ids.index) == ids[2:]
        assert ids[2] in first.result()


@each_claim
def test_a_poll_whose_turn_does_not_come_says_so_and_takes_nothing(
    store: DynamoDBStore, tenant: str, claim_in: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = filled(store, tenant, 4)
    elsewhere = filled(store, tenant + "-2", 1)
    monkeypatch.setattr(claims, "MAX_SECONDS", 0.01)
    with held_up(store, lambda: claim(store, tenant, 2)) as first:
        with pytest.raises(StoreUnavailable, match="Other polls"):
            claim_in(store, tenant, 4)
        assert claim(store, tenant + "-2") == elsewhere
    assert first.result() == ids[:2]
    assert claim(store, tenant) == ids[2:]


@each_claim
def test_a_lease_is_no_shorter_for_a_poll_that_had_to_wait(store: DynamoDBStore, tenant: str, claim_in: Claim) -> None:
    filled(store, tenant, 4)
    attempt = "attempt-2" if claim_in is repeatable_claim else None
    size, until_ms = PageSize(2, ANY_SIZE), NOW + 60_000
    with ThreadPoolExecutor(1) as pool:
        with held_up(store, lambda: claim_in(store, tenant, 2)):
            second = pool.submit(store.events.claim, tenant, DEFAULT_INBOX, size, NOW, until_ms, attempt)
            assert not wait([second], IN_VAIN_SECONDS).done
        leases = [event.lease for event in second.result().events]
    assert len(leases) == 2
    assert all(lease is not None and lease.expires_at_ms > until_ms for lease in leases)


def test_who_asks_again_at_once_comes_after_those_who_wait() -> None:
    """A poll for many events, which takes them 25 at a time."""
    polls, order = PollQueues(), list[str]()
    many, few = polls.turn(("acme", DEFAULT_INBOX)), polls.turn(("acme", DEFAULT_INBOX))

    def take_few() -> None:
        with few:
            order.append("few")

    with ThreadPoolExecutor(1) as pool:
        with many:
            taking = pool.submit(take_few)
            until(lambda: few in few._queue.turns)
        with many:
            order.append("many")
        taking.result()
    assert order == ["few", "many"]
