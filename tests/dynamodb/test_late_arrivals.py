"""Events that arrive while a poll is at work: none comes out before one that was sent earlier."""

from typing import Any

import pytest

from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.event_states import EventUpdates
from tests.dynamodb.conftest import LATER, NOW, Claim, claim, each_claim, fresh, have_polled_before


@each_claim
def test_an_event_that_was_on_its_way_is_not_overtaken(
    store: DynamoDBStore,
    other_store: DynamoDBStore,
    third_store: DynamoDBStore,
    tenant: str,
    claim_in: Claim,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    have_polled_before(store, tenant)
    have_polled_before(other_store, tenant)
    older = [fresh() for _ in range(24)]
    slow, sent_after_it = fresh(), fresh()
    other_store.events.put(tenant, older, NOW, LATER)
    make = EventUpdates.apply
    entries: list[int] = []

    def make_while_others_send_and_poll(changes: EventUpdates, *arguments: Any) -> Any:
        if changes is not store.events._updates:
            return make(changes, *arguments)
        entries.append(len(arguments[0]))
        if arguments[0] and sum(entries) == 13:
            # All that the poll knows of is somebody else's now.
            claim(other_store, tenant, 23)
            # Its place is before all others, and it is only now to be seen there.
            third_store.events.put(tenant, [slow], NOW - 1000, LATER)
            other_store.events.put(tenant, [sent_after_it], NOW, LATER)
        return make(changes, *arguments)

    monkeypatch.setattr(EventUpdates, "apply", make_while_others_send_and_poll)
    got = claim_in(store, tenant, 13)
    rest = claim(store, tenant, 100)
    both = [event_id for event_id in got + rest if event_id in (slow.event_id, sent_after_it.event_id)]
    assert both == [slow.event_id, sent_after_it.event_id]


def test_a_page_is_in_order_even_within_a_millisecond(
    store: DynamoDBStore, other_store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_polled_before(store, tenant)
    have_polled_before(other_store, tenant)
    events = [fresh() for _ in range(26)]
    ids = [event.event_id for event in events]
    other_store.events.put(tenant, events, NOW, LATER)
    make, call = EventUpdates.apply, Connection.call
    hidden = {ids[10]}

    def make_while_others_poll(changes: EventUpdates, *arguments: Any) -> Any:
        if changes is store.events._updates and arguments[0] and hidden:
            assert claim(other_store, tenant, 11) == ids[:10] + ids[11:12]
            hidden.clear()
        return make(changes, *arguments)

    def call_without_what_is_hidden(connection: Connection, operation: str, **parameters: Any) -> Any:
        answer = call(connection, operation, **parameters)
        if operation == "query":
            answer["Items"] = [item for item in answer["Items"] if item["sk"]["S"] not in hidden]
        return answer

    monkeypatch.setattr(EventUpdates, "apply", make_while_others_poll)
    monkeypatch.setattr(Connection, "call", call_without_what_is_hidden)
    assert claim(store, tenant, 13) == [ids[10], *ids[12:24]]
