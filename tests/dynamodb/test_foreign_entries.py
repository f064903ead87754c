"""Items of one tenant in another tenant's index partitions.

The store never writes them, but a role with write access to one tenant's items could.
"""

from dataclasses import replace

import pytest

from inbox.domain.events import DEFAULT_INBOX, Order, Selection, Status
from inbox.domain.inboxes import Inbox
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.layout import EVENTS, event_key
from tests.contract.samples import ids
from tests.dynamodb.conftest import EVERYTHING, LEASE_UNTIL, NOW, claim, put_events

pytestmark = pytest.mark.usefixtures("no_pauses")

each_inbox = pytest.mark.parametrize("inbox", [DEFAULT_INBOX, "crm"])


@pytest.fixture
def store(uncached_store: DynamoDBStore, tenant: str) -> DynamoDBStore:
    for each in (tenant, intruder_of(tenant)):
        uncached_store.inboxes.save(each, Inbox("crm", None, NOW))
    return uncached_store


def intruder_of(tenant: str) -> str:
    """Returns the ID of another tenant, which begins like the tenant's."""
    return f"{tenant}-2"


@pytest.fixture
def own(store: DynamoDBStore, tenant: str, inbox: str) -> list[str]:
    """The tenant's events. The inbox's index partition also lists delivered and undelivered events of the intruder."""
    put_foreign_entries(store, tenant, inbox, consume_count=2)
    own = put_events(store, tenant, 3)
    put_foreign_entries(store, tenant, inbox, consume_count=0)
    return own


def put_foreign_entries(store: DynamoDBStore, tenant: str, inbox: str, consume_count: int) -> None:
    other = intruder_of(tenant)
    foreign = put_events(store, other, 3)
    if consume_count:
        claim(store, other, consume_count, inbox=inbox)
    for item in store._connection.get_many(EVENTS, [event_key(other, each, inbox) for each in foreign]):
        item["gsi1pk"] = {"S": tenant if inbox == DEFAULT_INBOX else f"{tenant}#{inbox}"}
        if "gsi2pk" in item:
            item["gsi2pk"] = {"S": tenant}
        store._connection.call("put_item", TableName=store._connection.table(EVENTS), Item=item)


@each_inbox
@pytest.mark.parametrize("lease_until_ms", [None, LEASE_UNTIL], ids=["consume", "lease"])
@pytest.mark.parametrize("attempt", [None, "attempt-1"], ids=["plain", "repeatable"])
def test_poll_returns_own_events_only(
    store: DynamoDBStore, tenant: str, inbox: str, own: list[str], lease_until_ms: int | None, attempt: str | None
) -> None:
    page = store.events.claim(tenant, inbox, EVERYTHING, NOW, lease_until_ms=lease_until_ms, attempt=attempt)
    assert (ids(page.events), page.more) == (own, False)


@each_inbox
def test_lists_contain_own_events_only(store: DynamoDBStore, tenant: str, inbox: str, own: list[str]) -> None:
    assert ids(store.events.peek(tenant, inbox, Order.NEWEST, EVERYTHING, NOW).events) == own[::-1]
    of_inbox = Selection(inbox=inbox)
    selections = [of_inbox, replace(of_inbox, status=Status.UNDELIVERED), replace(of_inbox, event_type="order.created")]
    for selection in selections:
        assert ids(store.events.page(tenant, selection, Order.OLDEST, EVERYTHING, None, NOW).events) == own
    delivered = replace(of_inbox, status=Status.DELIVERED)
    assert store.events.page(tenant, delivered, Order.OLDEST, EVERYTHING, None, NOW).events == []


@each_inbox
def test_only_own_events_are_counted(store: DynamoDBStore, tenant: str, inbox: str, own: list[str]) -> None:
    assert store.counters.undelivered(tenant, inbox, NOW).count == len(own)


@each_inbox
@pytest.mark.usefixtures("own")
def test_only_own_events_are_replayed(store: DynamoDBStore, tenant: str, inbox: str) -> None:
    assert store.events.replay_all(tenant, Selection(inbox=inbox), 500, NOW).count == 0


@pytest.mark.parametrize("inbox", ["crm"])
def test_deleting_an_inbox_deletes_own_events_only(
    store: DynamoDBStore, tenant: str, inbox: str, own: list[str]
) -> None:
    assert store.inboxes.close(tenant, inbox)
    assert store.inboxes.delete_copies(tenant, inbox, 500) == len(own)
