"""What comes back from a lease or a delay, where DynamoDB makes it hard: many at once, an index that shows too much."""

from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, Event, Order, PageSize, Receipt, Selection, Status
from inbox.errors import InvalidRequest
from inbox.store.dynamodb import DynamoDBStore, claims, history, status_index
from tests.dynamodb.conftest import ANY_SIZE, LATER, NOW, claim, fresh
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness


def lease(store: DynamoDBStore, tenant: str, most: int, now_ms: int, attempt: str | None = None) -> list[Event]:
    size = PageSize(most, ANY_SIZE)
    return store.events.claim(tenant, DEFAULT_INBOX, size, now_ms, now_ms + 1_000, attempt).events


def put(store: DynamoDBStore, tenant: str, count: int) -> list[str]:
    events = [fresh() for _ in range(count)]
    store.events.put(tenant, events, NOW, LATER)
    return [event.event_id for event in events]


@pytest.mark.parametrize("attempt", [None, "attempt"])
def test_many_dead_are_in_nobodys_way(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch, attempt: str | None
) -> None:
    monkeypatch.setattr(claims, "_MAX_EXPIRED_LEASES", 2)
    put(store, tenant, 6)
    now = NOW
    for _ in range(MAX_DELIVERIES):
        assert sum(len(lease(store, tenant, 2, now)) for _ in range(3)) == 6
        now += 1_000
    late = put(store, tenant, 1)
    lease(store, tenant, 1, now)
    now += 1_000

    peeked = store.events.peek(tenant, DEFAULT_INBOX, Order.OLDEST, PageSize(9, ANY_SIZE), now)
    assert [event.event_id for event in peeked.events] == late
    assert [event.event_id for event in lease(store, tenant, 9, now, attempt)] == late
    dead = store.events.page(tenant, Selection(status=Status.DEAD), Order.OLDEST, PageSize(9, ANY_SIZE), None, now)
    assert len(dead.events) == 6


def test_a_delay_that_ends_is_no_lost_lease_whatever_the_setting_says_by_then(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    put(store, tenant, 1)
    lease(store, tenant, 1, NOW)
    (event,) = lease(store, tenant, 1, NOW + 1_000)
    assert event.lease is not None
    receipt = Receipt(event.inbox, event.event_id, event.lease.claim_id)
    # Exactly as long as the lease would have been: the index shows the same moment before and after.
    assert store.events.release(tenant, [receipt], NOW + 2_000, NOW + 1_500) == [True]
    assert store.events.acknowledge(tenant, [receipt], NOW + 1_500) == [False]

    stricter = DynamoDBStore(harness.connection, 1)
    assert [each.event_id for each in lease(stricter, tenant, 1, NOW + 2_000)] == [event.event_id]


def test_an_event_that_the_index_shows_twice_is_taken_once(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = put(store, tenant, 2)
    query = store._connection.client.query

    def lagging(**parameters: Any) -> Any:
        """Still shows the first event as leased until long ago."""
        answer = query(**parameters)
        if parameters["ExpressionAttributeValues"][":last"]["S"].startswith("leased#"):
            shown = query(**{**parameters, "ExpressionAttributeValues": undelivered})["Items"]
            stale = [item for item in shown if item["sk"]["S"] == ids[0]]
            answer["Items"] = [
                item | {"gsi1sk": {"S": item["gsi1sk"]["S"].replace("undelivered#", f"leased#{NOW:013d}#")}}
                for item in stale
            ]
        return answer

    undelivered = {":partition": {"S": tenant}, ":first": {"S": "undelivered#"}, ":last": {"S": "undelivered#~"}}
    monkeypatch.setattr(store._connection.client, "query", lagging)
    taken = claim(store, tenant)
    monkeypatch.setattr(store._connection.client, "query", query)
    assert sorted(taken + claim(store, tenant)) == sorted(ids)


def test_an_event_that_lives_longer_than_those_behind_it_is_not_hidden_for_ever(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_index, "_EXPIRED_PREFIX_SECONDS", 0.3)
    (long_lived,) = put(store, tenant, 1)
    store.events.put(tenant, [fresh() for _ in range(3)], NOW, NOW // 1000 + 10)
    now = NOW + 20_000
    assert claim(store, tenant, 1, now) == [long_lived]
    assert claim(store, tenant, 1, now) == []
    store.events.replay(tenant, DEFAULT_INBOX, long_lived, now)

    polls = (claim(store, tenant, 1, now) for _ in range(500))
    assert next(filter(None, polls)) == [long_lived]


def test_a_range_with_too_much_before_the_first_of_it_says_so(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_MAX_REPLAY_ENTRIES", 3)
    put(store, tenant, 4)
    store.events.put(tenant, [fresh(event_type="invoice")], NOW + 1, LATER)
    assert len(claim(store, tenant, now_ms=NOW + 1)) == 5

    with pytest.raises(InvalidRequest):
        store.events.replay_all(tenant, Selection(event_type="invoice"), 9, NOW + 1)
    later = Selection(event_type="invoice", since_ms=NOW + 1)
    assert store.events.replay_all(tenant, later, 9, NOW + 1).count == 1
