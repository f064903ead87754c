"""TTL deletes days late: what has expired may fill the index, and hides nothing."""

import pytest

from inbox.domain.events import DEFAULT_INBOX, Order, PageSize
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore, status_index
from tests.dynamodb.conftest import ANY_SIZE, LATER, NOW, claim, fresh
from tests.engines.wire import Wire

SOON = NOW // 1000 + 10
AFTERWARDS = NOW + 10_000


def test_a_live_event_is_found_behind_many_expired_ones(
    store: DynamoDBStore, wire: Wire, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_index, "NEXT_PAGE_LIMIT", 100)
    store.events.put(tenant, [fresh() for _ in range(450)], NOW, SOON)
    live = fresh()
    store.events.put(tenant, [live], NOW, LATER)
    wire.reset()

    page = store.events.peek(tenant, DEFAULT_INBOX, Order.OLDEST, PageSize(1, ANY_SIZE), AFTERWARDS)
    assert ([event.event_id for event in page.events], page.more) == ([live.event_id], False)
    assert wire.calls["Query"] == 7
    # The next poll knows where they end.
    wire.reset()
    assert claim(store, tenant, 1, AFTERWARDS) == [live.event_id]
    assert wire.calls["Query"] == 2


def test_too_many_to_read_at_once_are_no_empty_inbox(
    store: DynamoDBStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_index, "NEXT_PAGE_LIMIT", 10)
    monkeypatch.setattr(status_index, "MAX_QUERIES", 3)
    store.events.put(tenant, [fresh() for _ in range(50)], NOW, SOON)
    live = fresh()
    store.events.put(tenant, [live], NOW, LATER)

    with pytest.raises(StoreUnavailable):
        claim(store, tenant, 1, AFTERWARDS)
    # Each poll begins where the one before it stopped.
    assert claim(store, tenant, 1, AFTERWARDS) == [live.event_id]
