"""Expired leases, delays and events, and an index with outdated entries."""

from dataclasses import replace
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, Order, PageSize, Selection, Status
from inbox.errors import InvalidRequest, StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore, claimable_events, history, status_index
from inbox.store.dynamodb.event_states import KnownEvent
from tests.contract.samples import ids, receipt
from tests.dynamodb.conftest import EVERYTHING, LATER_S, NOW, PAGE_BYTES, claim, new_event, poll, put_events
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness
from tests.engines.lagging_index import LaggingConnection, LaggingIndex
from tests.engines.wire import Wire
from tests.service import until

EXPIRES_AT_S = NOW // 1000 + 10
EXPIRES_AT_MS = NOW + 10_000


@pytest.mark.parametrize("attempt", [None, "attempt"])
def test_dead_events_do_not_hide_claimable_ones(store: DynamoDBStore, tenant: str, attempt: str | None) -> None:
    put_events(store, tenant, 6)
    now_ms = NOW
    for _ in range(MAX_DELIVERIES):
        leased = [claim(store, tenant, 2, now_ms=now_ms, lease_until_ms=now_ms + 1_000) for _ in range(3)]
        assert sum(map(len, leased)) == 6
        now_ms += 1_000
    late = put_events(store, tenant, 1)
    poll(store, tenant, 1, now_ms=now_ms, lease_until_ms=now_ms + 1_000)
    now_ms += 1_000

    assert ids(store.events.peek(tenant, DEFAULT_INBOX, Order.OLDEST, EVERYTHING, now_ms).events) == late
    assert claim(store, tenant, now_ms=now_ms, lease_until_ms=now_ms + 1_000, attempt=attempt) == late
    dead = store.events.page(tenant, Selection(status=Status.DEAD), Order.OLDEST, EVERYTHING, None, now_ms)
    assert len(dead.events) == 6


def test_end_of_a_delay_is_not_counted_as_an_expired_lease_if_max_deliveries_is_lowered(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str
) -> None:
    put_events(store, tenant, 1)
    poll(store, tenant, lease_until_ms=NOW + 1_000)
    (event,) = poll(store, tenant, now_ms=NOW + 1_000, lease_until_ms=NOW + 2_000)
    # The delay ends when the lease would have expired, so the index shows the same time before and after.
    assert store.events.release(tenant, [receipt(event)], NOW + 2_000, NOW + 1_500) == [True]
    assert store.events.acknowledge(tenant, [receipt(event)], NOW + 1_500) == [False]

    stricter = DynamoDBStore(harness.connection, 1)
    assert claim(stricter, tenant, now_ms=NOW + 2_000, lease_until_ms=NOW + 3_000) == [event.event_id]


def test_event_that_the_index_lists_twice_is_claimed_once(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = put_events(store, tenant, 2)
    query = store._connection.client.query
    undelivered = {":partition": {"S": tenant}, ":first": {"S": "undelivered#"}, ":last": {"S": "undelivered#~"}}

    def query_lagging_index(**parameters: Any) -> Any:
        """Returns the first event also as a lease that has expired."""
        response = query(**parameters)
        if parameters["ExpressionAttributeValues"][":last"]["S"].startswith("leased#"):
            items = query(**{**parameters, "ExpressionAttributeValues": undelivered})["Items"]
            response["Items"] = [
                item | {"gsi1sk": {"S": item["gsi1sk"]["S"].replace("undelivered#", f"leased#{NOW:013d}#")}}
                for item in items
                if item["sk"]["S"] == events[0]
            ]
        return response

    monkeypatch.setattr(store._connection.client, "query", query_lagging_index)
    claimed = claim(store, tenant)
    monkeypatch.setattr(store._connection.client, "query", query)
    assert sorted(claimed + claim(store, tenant)) == sorted(events)


def test_replayed_event_before_expired_ones_is_found_again(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_index, "_EXPIRED_PREFIX_SECONDS", 0.3)
    events = put_events(store, tenant, 1)
    store.events.put(tenant, [new_event() for _ in range(3)], NOW, EXPIRES_AT_S)
    now_ms = EXPIRES_AT_MS + 10_000
    assert claim(store, tenant, 1, now_ms=now_ms) == events
    assert claim(store, tenant, 1, now_ms=now_ms) == []
    store.events.replay(tenant, DEFAULT_INBOX, events[0], now_ms)

    polls = (claim(store, tenant, 1, now_ms=now_ms) for _ in range(500))
    assert next(filter(None, polls)) == events


def test_replay_of_too_large_a_range_is_refused(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_MAX_REPLAY_ENTRIES", 3)
    put_events(store, tenant, 4)
    store.events.put(tenant, [new_event(event_type="invoice")], NOW + 1, LATER_S)
    assert len(claim(store, tenant, now_ms=NOW + 1)) == 5

    with pytest.raises(InvalidRequest):
        store.events.replay_all(tenant, Selection(event_type="invoice"), 9, NOW + 1)
    later = Selection(event_type="invoice", since_ms=NOW + 1)
    assert store.events.replay_all(tenant, later, 9, NOW + 1).count == 1


def test_event_behind_many_expired_ones_is_found(
    store: DynamoDBStore, wire: Wire, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_index, "NEXT_PAGE_LIMIT", 100)
    store.events.put(tenant, [new_event() for _ in range(450)], NOW, EXPIRES_AT_S)
    live = put_events(store, tenant, 1)
    wire.reset()

    page = store.events.peek(tenant, DEFAULT_INBOX, Order.OLDEST, PageSize(1, PAGE_BYTES), EXPIRES_AT_MS)
    assert (ids(page.events), page.more) == (live, False)
    assert wire.calls["Query"] == 7
    # The next poll starts after the expired events.
    wire.reset()
    assert claim(store, tenant, 1, now_ms=EXPIRES_AT_MS) == live
    assert wire.calls["Query"] == 2


def test_poll_that_cannot_read_all_expired_events_fails_and_the_next_continues(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_index, "NEXT_PAGE_LIMIT", 10)
    monkeypatch.setattr(status_index, "MAX_QUERIES", 3)
    store.events.put(tenant, [new_event() for _ in range(50)], NOW, EXPIRES_AT_S)
    live = put_events(store, tenant, 1)

    with pytest.raises(StoreUnavailable):
        claim(store, tenant, 1, now_ms=EXPIRES_AT_MS)
    assert claim(store, tenant, 1, now_ms=EXPIRES_AT_MS) == live


def test_entries_that_stay_in_the_index_for_a_minute_cost_nothing_again(harness: DynamoDBHarness, tenant: str) -> None:
    index = LaggingIndex(lag_seconds=60)
    connection = LaggingConnection(harness.connection, index)
    store = DynamoDBStore(connection, MAX_DELIVERIES)
    events = put_events(store, tenant, 300)
    index.catch_up()
    wire = Wire(connection)
    try:
        assert sorted(event_id for _ in range(3) for event_id in claim(store, tenant, 100)) == sorted(events)
        # The index lists most of them for half a minute, and lists them again after that.
        index.advance(30)
        wire.reset()
        assert [claim(store, tenant, 100) for _ in range(3)] == [[], [], []]
        assert any(entry["gsi1sk"]["S"].startswith("undelivered#") for entry in index.shown())
        assert wire.write_calls == 0
    finally:
        wire.remove()


def test_outdated_entries_are_remembered_by_number_and_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claimable_events, "_MAX_OUTDATED_ENTRIES", 3)
    monkeypatch.setattr(claimable_events, "_OUTDATED_SECONDS", 0.5)
    outdated = claimable_events.OutdatedEntries()
    entries = [
        KnownEvent("acme", str(number), "acme", True, "undelivered#", "", 0, "0", 0, None) for number in range(4)
    ]
    outdated.add(entries)
    assert [entry in outdated for entry in entries] == [False, True, True, True]
    assert replace(entries[3], deliveries=1) not in outdated
    until(lambda: entries[3] not in outdated)
