"""The items of counters: the limit of event types, the items that are read, and expiry."""

import pytest

from inbox.domain.events import DEFAULT_INBOX
from inbox.domain.inboxes import Inbox
from inbox.domain.stats import MAX_TYPES, OTHER_TYPES, Counts, Span
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.layout import TENANTS, counter_key
from tests.dynamodb.conftest import LATER_S, LEASE_UNTIL, NOW, TODAY, claim, new_event, poll, put_events, total_counts
from tests.engines.wire import Wire


def test_number_of_event_types_is_limited_across_processes(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str
) -> None:
    for number, each in enumerate((store, other_store, store)):
        types = [f"of-{number}-{event_type}" for event_type in range(MAX_TYPES)]
        each.events.put(tenant, [new_event(event_type=event_type) for event_type in types], NOW, LATER_S)
        each.counters.flush()

    for _ in range(2):
        assert len(store.counters.list_counts(tenant, DEFAULT_INBOX, Span.DAY, 0)) == MAX_TYPES + 1
        assert total_counts(store, tenant).received == 3 * MAX_TYPES
        store.counters.recount(tenant, 0, NOW)


def test_event_type_keeps_its_own_counts_when_others_are_merged(store: DynamoDBStore, tenant: str) -> None:
    def send_types(name: str, count: int) -> None:
        store.events.put(tenant, [new_event(event_type=f"{name}-{number}") for number in range(count)], NOW, LATER_S)

    send_types("old", 30)
    store.counters.flush()
    # A single call cannot write all of these counts, and an item has no room for all of these types.
    send_types("new", 100)
    poll(store, tenant, 130, lease_until_ms=LEASE_UNTIL)
    send_types("new", 100)
    send_types("old", 30)
    claim(store, tenant)
    store.counters.flush()

    counted = {each.event_type: each.counts for each in store.counters.list_counts(tenant, DEFAULT_INBOX, Span.DAY, 0)}
    own_types = {f"old-{number}" for number in range(30)} | {f"new-{number}" for number in range(MAX_TYPES - 30)}
    assert counted.keys() == own_types | {OTHER_TYPES}
    assert {counted[each] for each in own_types} == {
        Counts(received=2, delivered=1, leased=1, bytes=2 * len(new_event().payload))
    }
    assert counted[OTHER_TYPES][:3] == (160, 80, 80)
    assert store.counters.recount(tenant, 0, NOW) == 0


def test_counters_of_a_named_inbox_are_not_read_for_default(store: DynamoDBStore, wire: Wire, tenant: str) -> None:
    put_events(store, tenant, 1)
    for day in range(40):
        for span in Span:
            key = counter_key(tenant, "shipping", span, TODAY - day * Span.DAY.ms)
            item = {**key, "filling": {"S": "x" * 1_000}}
            store._connection.call("put_item", TableName=store._connection.table(TENANTS), Item=item)
    store.counters.flush()
    wire.reset()
    for span in Span:
        store.counters.list_counts(tenant, DEFAULT_INBOX, span, TODAY - 30 * Span.DAY.ms)
    assert wire.read_units == 1


def test_counts_of_a_recreated_inbox_begin_at_zero(store: DynamoDBStore, tenant: str) -> None:
    store.inboxes.save(tenant, Inbox("shipping", None, NOW))
    store.events.put(tenant, [new_event(event_type=f"type-{each}") for each in range(MAX_TYPES)], NOW, LATER_S)
    store.counters.flush()
    put_events(store, tenant, 1)
    store.inboxes.close(tenant, "shipping")
    store.inboxes.delete_copies(tenant, "shipping", 500)
    store.inboxes.save(tenant, Inbox("shipping", None, NOW))
    put_events(store, tenant, 1)
    store.counters.flush()
    (counted,) = store.counters.list_counts(tenant, "shipping", Span.DAY, 0)
    assert (counted.event_type, counted.counts.received) == ("order.created", 1)


def test_counts_of_a_newer_release_are_ignored(store: DynamoDBStore, tenant: str) -> None:
    key = counter_key(tenant, DEFAULT_INBOX, Span.DAY, TODAY)
    item = {**key, "surprises#order.created": {"N": "3"}, "received#order.created": {"N": "2"}}
    store._connection.call("put_item", TableName=store._connection.table(TENANTS), Item=item)
    assert total_counts(store, tenant) == Counts(received=2)


def test_large_number_of_undelivered_events_comes_from_the_counters(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inbox.store.dynamodb.counters._MAX_COUNTED_EXACTLY", 5)
    put_events(store, tenant, 9)
    claim(store, tenant, 2)
    store.events.erase(tenant, put_events(store, tenant, 1)[0], NOW)
    # The counts are not written yet, so the figure is the number of entries that were read, a lower bound.
    assert store.counters.undelivered(tenant, DEFAULT_INBOX, NOW).count == 6
    store.counters.flush()
    assert store.counters.undelivered(tenant, DEFAULT_INBOX, NOW).count == 7

    # Events received before the retention time have expired, delivered or not.
    day = store._connection.get(TENANTS, {"PK": {"S": f"TENANT#{tenant}"}, "SK": {"S": "METRICS#DAY#2100-01-01"}})
    assert day is not None
    assert (day["undelivered"], day["delivered#order.created"]) == ({"N": "7"}, {"N": "2"})
    long_ago = TODAY - 31 * Span.DAY.ms
    store.counters._counter._pending.add_undelivered((tenant, DEFAULT_INBOX), long_ago, 100)
    store.counters.flush()
    assert store.counters.undelivered(tenant, DEFAULT_INBOX, NOW).count == 7


def test_counters_expire(store: DynamoDBStore, tenant: str) -> None:
    store.inboxes.save(tenant, Inbox("shipping", None, NOW))
    put_events(store, tenant, 1)
    store.counters.flush()
    keys = ("METRICS#HOUR#2100-01-01T00", "METRICS#DAY#2100-01-01", "METRICS#HOUR#shipping#2100-01-01T00")
    expiries = []
    for key in keys:
        item = store._connection.get(TENANTS, {"PK": {"S": f"TENANT#{tenant}"}, "SK": {"S": key}})
        assert item is not None
        expiries.append(int(item["ttl"]["N"]) - NOW // 1000)
    assert expiries == [73 * 3600, 401 * 86_400, 73 * 3600]
