"""Items in index partitions of another tenant or inbox.

The store never writes them, but a role with write access to one tenant's items could.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from inbox.domain.events import DEFAULT_INBOX, Order, Selection, Status
from inbox.domain.inboxes import Inbox
from inbox.domain.stats import Span
from inbox.domain.tenants import TenantSelection
from inbox.services.backlog import InboxBacklog, find_backlog
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import (
    EVENTS,
    STATUS_INDEX,
    TENANTS,
    event_key,
    is_own_entry,
    key_of,
    make_delayed_key,
    make_index_partition,
    make_leased_key,
    make_status_key,
    number,
    order_key_of,
    tenant_api_key_item_key,
    tenant_key,
    text,
    type_index_keys,
)
from inbox.store.dynamodb.tables import DEFINITIONS
from tests.contract.samples import ids
from tests.contract.samples import tenant as named
from tests.dynamodb.conftest import EVERYTHING, LEASE_UNTIL, NOW, api_key, audit_entry, claim, put_events
from tests.engines.harnesses import MAX_DELIVERIES, DynamoDBHarness

pytestmark = pytest.mark.usefixtures("no_pauses")

EVENT_TYPE = "order.created"
ENDED = NOW - 1

each_inbox = pytest.mark.parametrize("inbox", [DEFAULT_INBOX, "crm"])
each_status = pytest.mark.parametrize("status", [None, *Status])
each_event_type = pytest.mark.parametrize("event_type", [None, EVENT_TYPE])

INDEXES = [
    pytest.param(table, index, id=index["IndexName"])
    for table, definition in DEFINITIONS.items()
    for index in definition.get("GlobalSecondaryIndexes", [])
]


@pytest.fixture
def store(uncached_store: DynamoDBStore, tenant: str) -> DynamoDBStore:
    uncached_store.inboxes.save(tenant, Inbox("crm", None, NOW))
    return uncached_store


@pytest.fixture
def intruder(tenant: str) -> str:
    """The ID of another tenant, which begins like the tenant's."""
    return f"{tenant}-2"


# Events


@pytest.fixture(params=["another tenant", "another inbox"])
def foreign_key(request: pytest.FixtureRequest, tenant: str, intruder: str) -> tuple[str, str]:
    """The partition and the inbox of the foreign events."""
    return (intruder, request.getfixturevalue("inbox")) if request.param == "another tenant" else (tenant, "web")


@pytest.fixture
def own(store: DynamoDBStore, tenant: str, inbox: str, foreign_key: tuple[str, str]) -> Iterator[list[str]]:
    """The tenant's events. The inbox's index partitions also list foreign events, older and newer, in every state."""
    planted = plant_events(store, tenant, inbox, *foreign_key)
    own = put_events(store, tenant, 3)
    planted += plant_events(store, tenant, inbox, *foreign_key)
    yield own
    assert_unchanged(store, planted)


@pytest.fixture
def only_foreign(store: DynamoDBStore, tenant: str, inbox: str, foreign_key: tuple[str, str]) -> Iterator[None]:
    """The tenant has no event of its own."""
    planted = plant_events(store, tenant, inbox, *foreign_key)
    yield
    assert_unchanged(store, planted)


def plant_events(
    store: DynamoDBStore, tenant: str, inbox: str, foreign_partition: str, foreign_inbox: str
) -> list[dict[str, Any]]:
    """Stores foreign events, one in each state, with the index keys of the tenant's inbox. Returns their items."""
    index_partition, source = make_index_partition(tenant, inbox), f"{tenant}-source"
    states = states_of("")
    stored = store._connection.get_many(
        EVENTS, [event_key(source, each) for each in put_events(store, source, len(states))]
    )
    planted = []
    for position, item in enumerate(stored):
        order_key = order_key_of(item)
        planted.append(
            {
                **item,
                **states_of(order_key)[position],
                **event_key(foreign_partition, item["event_id"]["S"], foreign_inbox),
                **type_index_keys(index_partition, EVENT_TYPE, order_key),
                "gsi1pk": text(index_partition),
                "tenant_id": text(tenant),
            }
        )
        put_item(store, EVENTS, planted[-1])
    return planted


def states_of(order_key: str) -> list[dict[str, Any]]:
    def state(status: Status, status_key: str, lost_leases: int = 0) -> dict[str, Any]:
        return {"status": text(status), "gsi1sk": text(status_key), "lost_leases": number(lost_leases)}

    unavailable = [
        state(status, make_key(until_ms, order_key))
        for status, make_key in ((Status.LEASED, make_leased_key), (Status.UNDELIVERED, make_delayed_key))
        for until_ms in (ENDED, LEASE_UNTIL)
    ]
    dead_but_not_marked = state(Status.LEASED, make_leased_key(ENDED, order_key), MAX_DELIVERIES - 1)
    others = [
        state(status, make_status_key(status, order_key))
        for status in (Status.UNDELIVERED, Status.DELIVERED, Status.DEAD)
    ]
    return [*others, *unavailable, dead_but_not_marked]


def put_item(store: DynamoDBStore, table: str, item: dict[str, Any]) -> None:
    store._connection.call("put_item", TableName=store._connection.table(table), Item=item)


def assert_unchanged(store: DynamoDBStore, planted: list[dict[str, Any]]) -> None:
    stored = store._connection.get_many(EVENTS, [key_of(item) for item in planted])
    assert sorted(stored, key=str) == sorted(planted, key=str)


@each_inbox
@pytest.mark.parametrize("lease_until_ms", [None, LEASE_UNTIL], ids=["consume", "lease"])
@pytest.mark.parametrize("attempt", [None, "attempt-1"], ids=["plain", "repeatable"])
def test_poll_returns_own_events_only(
    store: DynamoDBStore, tenant: str, inbox: str, own: list[str], lease_until_ms: int | None, attempt: str | None
) -> None:
    page = store.events.claim(tenant, inbox, EVERYTHING, NOW, lease_until_ms=lease_until_ms, attempt=attempt)
    assert (ids(page.events), page.more) == (own, False)


@each_inbox
@pytest.mark.parametrize("order", Order)
def test_peek_returns_own_events_only(
    store: DynamoDBStore, tenant: str, inbox: str, own: list[str], order: Order
) -> None:
    page = store.events.peek(tenant, inbox, order, EVERYTHING, NOW)
    assert (ids(page.events), page.more) == (own if order is Order.OLDEST else own[::-1], False)


@each_inbox
@each_status
@each_event_type
def test_list_contains_own_events_only(
    store: DynamoDBStore, tenant: str, inbox: str, own: list[str], status: Status | None, event_type: str | None
) -> None:
    selection = Selection(inbox, status, event_type)
    listing = store.events.page(tenant, selection, Order.OLDEST, EVERYTHING, None, NOW)
    assert ids(listing.events) == (own if status in (None, Status.UNDELIVERED) else [])


@each_inbox
def test_only_own_events_are_counted(store: DynamoDBStore, tenant: str, inbox: str, own: list[str]) -> None:
    assert store.counters.undelivered(tenant, inbox, NOW).count == len(own)


@each_inbox
def test_recount_counts_own_events_only(store: DynamoDBStore, tenant: str, inbox: str, own: list[str]) -> None:
    store.counters.recount(tenant, 0, NOW)
    counted = store.counters.list_counts(tenant, inbox, Span.DAY, 0)
    assert sum(each.counts.received for each in counted) == len(own)


@each_inbox
@each_status
@each_event_type
@pytest.mark.usefixtures("own")
def test_only_own_events_are_replayed(
    store: DynamoDBStore, tenant: str, inbox: str, status: Status | None, event_type: str | None
) -> None:
    result = store.events.replay_all(tenant, Selection(inbox, status, event_type), 500, NOW)
    assert (result.count, result.more) == (0, False)


@pytest.mark.parametrize("inbox", ["crm"])
def test_deleting_an_inbox_deletes_own_events_only(
    store: DynamoDBStore, tenant: str, inbox: str, own: list[str]
) -> None:
    assert store.inboxes.close(tenant, inbox)
    assert store.inboxes.delete_copies(tenant, inbox, 500) == len(own)


@each_inbox
@pytest.mark.usefixtures("only_foreign")
def test_foreign_events_end_no_wait(
    store: DynamoDBStore, tenant: str, inbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inbox.store.dynamodb.arrivals._MIN_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("inbox.store.dynamodb.arrivals._MAX_SECONDS_PER_CHECK", 60.0)
    watch, waiting = store.watch_arrivals(), frozenset({(tenant, inbox)})
    assert watch.check(waiting, NOW) == set()
    put_events(store, tenant, 1)
    watch.check_soon([tenant])
    assert watch.check(waiting, NOW) == waiting
    watch.close()


@each_inbox
@pytest.mark.usefixtures("only_foreign")
def test_backlog_contains_own_events_only(store: DynamoDBStore, tenant: str, inbox: str) -> None:
    def backlog() -> list[InboxBacklog]:
        return [each for each in find_backlog(store, lambda: NOW) if (each.tenant_id, each.inbox) == (tenant, inbox)]

    store.tenants.create(named(tenant), [audit_entry()])
    assert backlog() == []
    put_events(store, tenant, 1)
    assert len(backlog()) == 1


def test_events_of_the_intruder_are_not_counted_for_the_tenant(
    store: DynamoDBStore, tenant: str, intruder: str
) -> None:
    for event_id in put_events(store, intruder, 2):
        (item,) = store._connection.get_many(EVENTS, [event_key(intruder, event_id)])
        put_item(store, EVENTS, item | {"tenant_id": text(tenant)})

    (claimed,) = claim(store, intruder, 1)
    (unclaimed,) = ids(store.events.peek(intruder, DEFAULT_INBOX, Order.OLDEST, EVERYTHING, NOW).events)
    for event_id in (claimed, unclaimed):
        assert store.events.erase(intruder, event_id, NOW)

    store.counters.flush()
    assert store.counters.list_counts(tenant, DEFAULT_INBOX, Span.DAY, 0) == []
    (counted,) = store.counters.list_counts(intruder, DEFAULT_INBOX, Span.DAY, 0)
    assert (counted.counts.received, counted.counts.delivered) == (2, 1)


# Tenants


@pytest.fixture(params=["METADATA", "PLANTED"])
def planted_tenant(
    request: pytest.FixtureRequest, store: DynamoDBStore, tenant: str, intruder: str
) -> Iterator[dict[str, Any]]:
    """An item in the intruder's partition that claims to be a newer version of the tenant."""
    own = named(tenant, organization_name="Acme", email=f"ops@{tenant}.example")
    store.tenants.create(own, [audit_entry()])
    item = store._connection.get(TENANTS, tenant_key(tenant))
    assert item is not None
    changes = {"version": number(9), "organization_name": text("Evil")}
    planted = item | changes | {"PK": tenant_key(intruder)["PK"], "SK": text(request.param)}
    put_item(store, TENANTS, planted)
    yield planted
    assert store._connection.get(TENANTS, {name: planted[name] for name in ("PK", "SK")}) == planted


@pytest.mark.parametrize(
    "selection",
    [
        TenantSelection(),
        TenantSelection(include_inactive=True),
        TenantSelection(since_ms=NOW),
        TenantSelection(until_ms=NOW + 1),
        *(TenantSelection(status) for status in [named().status]),
    ],
    ids=str,
)
@pytest.mark.usefixtures("planted_tenant")
def test_list_contains_each_tenant_as_stored(store: DynamoDBStore, tenant: str, selection: TenantSelection) -> None:
    listed = [each for each in store.tenants.page(selection, 500, None) if tenant in each.tenant_id]
    assert listed == [store.tenants.get(tenant)]


@pytest.mark.usefixtures("planted_tenant")
def test_commands_for_all_tenants_find_each_as_stored(store: DynamoDBStore, tenant: str) -> None:
    listed = [each for each in store.tenants.all() if tenant in each.tenant_id]
    assert listed == [store.tenants.get(tenant)]
    assert [(each.organization_name, each.version) for each in listed] == [("Acme", 1)]


@pytest.mark.parametrize("tenant_id", [None, {"N": "5"}], ids=["missing", "number"])
@pytest.mark.parametrize("planted_tenant", ["PLANTED"], indirect=True)
def test_planted_item_without_a_tenant_id_is_not_listed(
    store: DynamoDBStore, tenant: str, planted_tenant: dict[str, Any], tenant_id: dict[str, str] | None
) -> None:
    item = {name: value for name, value in planted_tenant.items() if name != "tenant_id"}
    put_item(store, TENANTS, item | {"SK": text("OTHER"), **({} if tenant_id is None else {"tenant_id": tenant_id})})
    assert [each.tenant_id for each in store.tenants.all() if tenant in each.tenant_id] == [tenant]


@pytest.mark.usefixtures("planted_tenant")
def test_email_address_finds_the_tenant_that_has_it(store: DynamoDBStore, tenant: str) -> None:
    found = store.tenants.get_by_email(f"ops@{tenant}.example")
    assert found is not None
    assert found == store.tenants.get(tenant)


@pytest.mark.parametrize("planted_tenant", ["METADATA"], indirect=True)
@pytest.mark.usefixtures("planted_tenant")
def test_tenant_has_the_id_of_its_partition(store: DynamoDBStore, intruder: str) -> None:
    found = store.tenants.get(intruder)
    assert found is not None
    assert found.tenant_id == intruder


def test_list_contains_own_keys_only(store: DynamoDBStore, tenant: str, intruder: str) -> None:
    for each in (tenant, intruder):
        store.tenants.create(named(each), [audit_entry()])
    key, own = api_key(tenant), api_key(intruder)
    store.keys.create(key)
    store.keys.create(own)
    pointer = {**tenant_api_key_item_key(intruder, key.key_id), "key_hash": text(key.key_hash)}
    put_item(store, TENANTS, pointer)
    assert store.keys.all(intruder) == [own]


# Every index, including those that are added later


@pytest.mark.parametrize(("table", "index"), INDEXES)
def test_every_index_is_checked(
    harness: DynamoDBHarness, store: DynamoDBStore, tenant: str, intruder: str, table: str, index: dict[str, Any]
) -> None:
    own_key, foreign_key = (
        event_key(each, each) if table == EVENTS else tenant_key(each) for each in (tenant, intruder)
    )
    names = [key["AttributeName"] for key in index["KeySchema"]]
    for key in (own_key, foreign_key):
        put_item(store, table, {**dict.fromkeys(names, text(tenant)), "tenant_id": text(tenant), **key})
    query: dict[str, Any] = {
        "IndexName": index["IndexName"],
        "KeyConditionExpression": "#partition = :partition",
        "ExpressionAttributeNames": {"#partition": names[0]},
        "ExpressionAttributeValues": {":partition": text(tenant)},
    }
    connection = harness.connection
    for found in (
        connection.query(TableName=connection.table(table), **query)["Items"],
        list(connection.query_items(table, **query)),
        list(connection.all_items(table, **query)),
    ):
        assert [{name: item[name] for name in own_key} for item in found] == [own_key]


@pytest.mark.parametrize(
    "read",
    [
        lambda store, tenant: store.events.peek(tenant, DEFAULT_INBOX, Order.OLDEST, EVERYTHING, NOW),
        lambda store, tenant: store.events.page(
            tenant, Selection(event_type=EVENT_TYPE), Order.OLDEST, EVERYTHING, None, NOW
        ),
        lambda store, _tenant: store.tenants.all(),
    ],
    ids=["status-index", "event-type-index", "ActiveIndex"],
)
def test_tests_fail_if_the_store_reads_an_index_without_the_check(
    store: DynamoDBStore, tenant: str, read: Callable[[DynamoDBStore, str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "query", lambda connection, **query: connection.call("query", **query))
    with pytest.raises(AssertionError, match="without a check"):
        read(store, tenant)


def test_unknown_index_is_not_read() -> None:
    with pytest.raises(KeyError, match="another-index"):
        is_own_entry("another-index", {"pk": text("acme"), "sk": text("1")})


@pytest.mark.parametrize(
    ("partition", "sort_key", "listed_in"),
    [
        ("acme", "1", "acme"),
        ("acme", "1", "acme##3"),
        ("acme##3", "1", "acme##3"),
        ("acme#3", "1", "acme#3"),
        ("acme", "1#crm", "acme#crm"),
        ("acme##3", "1#crm", "acme#crm##3"),
        ("acme#3", "1#crm", "acme#crm#3"),
        ("acme", "1#3", "acme#3"),
        ("acme", "1#3", "acme#3#3"),
    ],
)
def test_own_entries_are_recognized(partition: str, sort_key: str, listed_in: str) -> None:
    assert is_own_entry(STATUS_INDEX, entry(partition, sort_key, listed_in))


@pytest.mark.parametrize(
    ("partition", "sort_key", "listed_in"),
    [
        ("evil", "1", "acme"),
        ("acme-2", "1", "acme"),
        ("acme", "1", "acme-2"),
        ("acme", "1", "acme-2##3"),
        ("evil##3", "1", "acme##3"),
        ("evil", "1#acme", "acme"),
        ("evil", "1#crm", "acme#crm"),
        ("acme", "1", "acme#crm"),
        ("acme", "1#crm", "acme"),
        ("acme", "1#crm", "acme##3"),
        ("acme", "1#crm", "acme#crm2"),
        ("acme", "1#crm", "acme#web"),
        ("acme", "1#crm", "acme#web##3"),
    ],
)
def test_foreign_entries_are_recognized(partition: str, sort_key: str, listed_in: str) -> None:
    assert not is_own_entry(STATUS_INDEX, entry(partition, sort_key, listed_in))


def entry(partition: str, sort_key: str, listed_in: str) -> dict[str, Any]:
    return {"pk": text(partition), "sk": text(sort_key), "gsi1pk": text(listed_in)}
