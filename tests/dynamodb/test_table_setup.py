"""`inbox init` on existing tables: what it adds, waits for, refuses, and leaves to CloudFormation."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from inbox.domain.events import Order, Selection
from inbox.errors import SettingsError, StoreUnavailable
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import SCHEMA_KEY, number
from inbox.store.dynamodb.table_setup import _Table
from inbox.store.dynamodb.tables import DEFINITIONS
from tests.contract.samples import ids
from tests.dynamodb.conftest import EVERYTHING, NOW, claim, list_tables, put_events
from tests.dynamodb.definitions import with_keys_only, without_indexes
from tests.engines.harnesses import MAX_DELIVERIES


@pytest.fixture(scope="module")
def dynamodb_local_url(new_dynamodb_local_url: str) -> str:
    # DynamoDB Local sometimes never finishes a new index after a service has used it.
    return new_dynamodb_local_url


on_moto = pytest.mark.parametrize("engine", ["moto"], indirect=True)


@pytest.fixture
def new_store(empty_connection: Connection) -> DynamoDBStore:
    """A store that has no tables yet."""
    return DynamoDBStore(empty_connection, MAX_DELIVERIES)


def create_table(connection: Connection, name: str, definition: dict[str, Any], **options: Any) -> None:
    connection.call("create_table", TableName=connection.table(name), **with_keys_only(definition), **options)


def create_all(connection: Connection, **definitions: dict[str, Any]) -> None:
    for name, definition in DEFINITIONS.items():
        create_table(connection, name, definitions.get(name, definition))


def describe(connection: Connection, name: str) -> dict[str, Any]:
    table: dict[str, Any] = connection.call("describe_table", TableName=connection.table(name))["Table"]
    return table


def indexes_of(connection: Connection, name: str) -> dict[str, dict[str, Any]]:
    return {each["IndexName"]: each for each in describe(connection, name)["GlobalSecondaryIndexes"]}


# Tables that cannot be used.


def with_keys_only_projection(definition: dict[str, Any]) -> dict[str, Any]:
    first, *others = definition["GlobalSecondaryIndexes"]
    return {**definition, "GlobalSecondaryIndexes": [{**first, "Projection": {"ProjectionType": "KEYS_ONLY"}}, *others]}


def with_swapped_indexes(definition: dict[str, Any]) -> dict[str, Any]:
    """Gives the first index the keys of the last, and all attributes."""
    first, *others = definition["GlobalSecondaryIndexes"]
    swapped = {**first, "KeySchema": others[-1]["KeySchema"], "Projection": {"ProjectionType": "ALL"}}
    return {**definition, "GlobalSecondaryIndexes": [swapped, *others]}


def with_numeric_sort_key(definition: dict[str, Any]) -> dict[str, Any]:
    attributes = [
        {**each, "AttributeType": "N"} if each["AttributeName"].lower() == "sk" else each
        for each in definition["AttributeDefinitions"]
    ]
    return {**definition, "AttributeDefinitions": attributes}


def with_other_key_names(definition: dict[str, Any]) -> dict[str, Any]:
    names = {"pk": "PK", "sk": "SK", "PK": "pk", "SK": "sk"}
    return {
        **definition,
        "KeySchema": [{**each, "AttributeName": names[each["AttributeName"]]} for each in definition["KeySchema"]],
        "AttributeDefinitions": [
            {**each, "AttributeName": names.get(each["AttributeName"], each["AttributeName"])}
            for each in definition["AttributeDefinitions"]
        ],
    }


OTHER_KEYS = r"The table .*{name} already exists with other keys\."
OTHER_INDEX = (
    r"The index {index} of the table .*{name} has other keys or too few attributes\. DynamoDB cannot change an index,"
    r" so a new one is needed: delete this one and run `inbox init` again, or set another INBOX_TABLE_PREFIX\."
)


@pytest.mark.parametrize("name", ["Events", "Tenants"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_numeric_sort_key, OTHER_KEYS),
        (with_other_key_names, OTHER_KEYS),
        (with_keys_only_projection, OTHER_INDEX),
        (with_swapped_indexes, OTHER_INDEX),
    ],
)
def test_table_with_other_keys_or_indexes_is_refused_before_any_is_created(
    new_store: DynamoDBStore,
    empty_connection: Connection,
    name: str,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    message: str,
) -> None:
    create_table(empty_connection, name, change(DEFINITIONS[name]))
    index = DEFINITIONS[name]["GlobalSecondaryIndexes"][0]["IndexName"]
    with pytest.raises(SettingsError, match=f"^{message.format(name=name, index=index)}$"):
        new_store.init()
    assert list_tables(empty_connection) == [empty_connection.table(name)]


def test_tables_of_a_newer_release_are_refused_before_any_change(
    new_store: DynamoDBStore, empty_connection: Connection
) -> None:
    create_all(empty_connection, Events=without_indexes("Events", "event-type-index"))
    item = {**SCHEMA_KEY, "version": number(3)}
    empty_connection.call("put_item", TableName=empty_connection.table("Tenants"), Item=item)
    with pytest.raises(StoreUnavailable, match="have schema version 3"):
        new_store.init()
    assert indexes_of(empty_connection, "Events").keys() == {"status-index"}


def test_tables_created_by_another_process_at_the_same_time_are_used(
    new_store: DynamoDBStore, empty_connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_store.init()
    created = list_tables(empty_connection)
    describe_table, not_found = _Table.describe, [None] * len(DEFINITIONS)
    monkeypatch.setattr(_Table, "describe", lambda table: not_found.pop() if not_found else describe_table(table))
    new_store.init()
    assert list_tables(empty_connection) == created
    assert not_found == []


# Missing indexes.


class ObservedUpdates:
    """Records the states of all indexes of a table at each UpdateTable, and checks that they are in use meanwhile."""

    def __init__(self, connection: Connection) -> None:
        self.created: list[str] = []
        self.states: list[dict[str, str]] = []
        self._connection = connection
        connection.client.meta.events.register("before-send.dynamodb.UpdateTable", self._record)

    def _record(self, request: Any, **_: Any) -> None:
        body = json.loads(request.body)
        table = self._connection.client.describe_table(TableName=body["TableName"])["Table"]
        self.states.append({each["IndexName"]: each["IndexStatus"] for each in table.get("GlobalSecondaryIndexes", [])})
        self.created += [each["Create"]["IndexName"] for each in body["GlobalSecondaryIndexUpdates"]]


def test_missing_index_is_added_while_the_store_is_used(new_store: DynamoDBStore, empty_connection: Connection) -> None:
    create_all(empty_connection, Events=without_indexes("Events", "event-type-index"))
    before = put_events(new_store, "acme", 3)
    during: list[str] = []

    def use_store() -> None:
        during.extend(put_events(new_store, "acme", 2))
        assert claim(new_store, "acme", 1) == before[:1]

    with ThreadPoolExecutor(1) as service:
        new_store.init(report=lambda _step: service.submit(use_store).result())

    by_type = Selection(event_type="order.created")
    listed = new_store.events.page("acme", by_type, Order.OLDEST, EVERYTHING, None, NOW)
    assert sorted(ids(listed.events)) == sorted(before + during)
    assert len(during) == 2
    definition = DEFINITIONS["Events"]["GlobalSecondaryIndexes"][1]
    index = indexes_of(empty_connection, "Events")["event-type-index"]
    assert {key: index[key] for key in definition} == definition


@pytest.mark.parametrize("name", ["Events", "Tenants"])
def test_missing_indexes_are_added_one_at_a_time(
    new_store: DynamoDBStore, empty_connection: Connection, name: str
) -> None:
    missing = [each["IndexName"] for each in DEFINITIONS[name]["GlobalSecondaryIndexes"]][-2:]
    create_all(empty_connection, **{name: without_indexes(name, *missing)})
    updates, steps = ObservedUpdates(empty_connection), list[str]()
    new_store.init(report=steps.append)

    assert updates.created == missing
    assert [state.get(missing[0]) for state in updates.states] == [None, "ACTIVE"]
    assert {status for state in updates.states for status in state.values()} == {"ACTIVE"}
    assert indexes_of(empty_connection, name).keys() >= set(missing)
    table = empty_connection.table(name)
    assert steps == [
        f"Creating the index {index} of {table}. This takes long if the table is large." for index in missing
    ]
    new_store.init(report=steps.append)
    assert len(updates.created) == len(steps) == 2


def make_error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "")


class Failing:
    """Replaces a method of the client: raises the errors one after the other, then calls it."""

    def __init__(self, connection: Connection, monkeypatch: pytest.MonkeyPatch, operation: str, *codes: str) -> None:
        self.codes = list(codes)
        self._operation = getattr(connection.client, operation)
        monkeypatch.setattr(connection.client, operation, self)

    def __call__(self, **parameters: Any) -> Any:
        if self.codes:
            raise make_error(self.codes.pop(0))
        return self._operation(**parameters)


def test_init_waits_while_another_process_changes_the_table(
    new_store: DynamoDBStore, empty_connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_all(empty_connection, Events=without_indexes("Events", "event-type-index"))
    failing = Failing(empty_connection, monkeypatch, "update_table", "ResourceInUseException", "LimitExceededException")
    new_store.init()
    assert failing.codes == []
    assert "event-type-index" in indexes_of(empty_connection, "Events")


def test_index_that_is_not_active_after_an_hour_is_an_error(
    new_store: DynamoDBStore, empty_connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_all(empty_connection, Events=without_indexes("Events", "event-type-index"))
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setattr(empty_connection.client, "update_table", lambda **_: {})
    monkeypatch.setattr(_Table, "_describe_active", lambda _table: {} if not pauses else None)
    with pytest.raises(
        StoreUnavailable, match=r"^Not finished after an hour: Creating the index .*run `inbox init` again"
    ):
        new_store.init()
    assert sum(pauses) == 3600
    assert new_store.schema.get() == 1


# TTL and recovery.


def test_table_with_another_ttl_attribute_is_refused(new_store: DynamoDBStore, empty_connection: Connection) -> None:
    create_table(empty_connection, "Tenants", DEFINITIONS["Tenants"])
    empty_connection.call(
        "update_time_to_live",
        TableName=empty_connection.table("Tenants"),
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "other"},
    )
    with pytest.raises(SettingsError, match="expires items by other"):
        new_store.init()


@pytest.mark.parametrize(
    ("statuses", "refusals", "enabled"),
    [
        (["DISABLING", "DISABLING", "DISABLED"], 0, 1),
        # DynamoDB accepts one change within an hour.
        (["DISABLED", "DISABLED"], 1, 1),
        (["DISABLING", "ENABLING"], 0, 0),
        (["ENABLING"], 0, 0),
    ],
)
@pytest.mark.usefixtures("no_pauses")
def test_init_enables_ttl_once_dynamodb_accepts_it(
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    statuses: list[str],
    refusals: int,
    enabled: int,
) -> None:
    remaining, updates, steps = list(statuses), [], list[str]()

    def describe_ttl(**_: Any) -> dict[str, Any]:
        status = remaining.pop(0)
        attribute = {} if status == "DISABLED" else {"AttributeName": "ttl"}
        return {"TimeToLiveDescription": {"TimeToLiveStatus": status, **attribute}}

    def update_ttl(**parameters: Any) -> dict[str, Any]:
        assert statuses[len(statuses) - len(remaining) - 1] == "DISABLED"
        updates.append(parameters["TimeToLiveSpecification"])
        if len(updates) <= refusals:
            raise make_error("ValidationException")
        return {}

    monkeypatch.setattr(connection.client, "describe_time_to_live", describe_ttl)
    monkeypatch.setattr(connection.client, "update_time_to_live", update_ttl)
    table = _Table(connection, "TenantApiKeys", streams=False, report=steps.append)
    table.complete()

    assert remaining == []
    assert updates == [{"Enabled": True, "AttributeName": "ttl"}] * (refusals + enabled)
    waiting = f"Waiting until DynamoDB lets TTL of {table.name} be enabled, up to an hour after its last change."
    assert steps == [waiting] * (len(statuses) > 1)


@pytest.mark.usefixtures("no_pauses")
def test_recovery_is_enabled_once_the_table_is_ready(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Failing(
        connection, monkeypatch, "update_continuous_backups", *["ContinuousBackupsUnavailableException"] * 2
    )
    _Table(connection, "Events", streams=False, report=lambda _step: None).complete()
    assert failing.codes == []


# Streams.


def stream_of(connection: Connection, name: str) -> Any:
    return describe(connection, name).get("StreamSpecification")


BOTH_IMAGES = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_streams_are_not_enabled_by_default(connection: Connection) -> None:
    assert [stream_of(connection, name) for name in DEFINITIONS] == [None] * len(DEFINITIONS)


@pytest.mark.parametrize("existing", DEFINITIONS)
def test_streams_are_enabled_on_new_and_existing_tables(
    new_store: DynamoDBStore, empty_connection: Connection, existing: str
) -> None:
    create_table(empty_connection, existing, DEFINITIONS[existing])
    steps: list[str] = []
    for _ in range(2):
        new_store.init(streams=True, report=steps.append)
        assert [stream_of(empty_connection, name) for name in DEFINITIONS] == [BOTH_IMAGES] * len(DEFINITIONS)
    assert steps == [f"Enabling the stream of {empty_connection.table(existing)}."]


def test_stream_with_another_view_type_is_refused_before_any_change(
    new_store: DynamoDBStore, empty_connection: Connection
) -> None:
    keys_only = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    create_table(empty_connection, "Tenants", DEFINITIONS["Tenants"], StreamSpecification=keys_only)
    message = (
        r"^The table .*Tenants has a stream with the view type KEYS_ONLY, which DynamoDB cannot change\. Disable the"
        r" stream, then run `inbox init --streams` again: it enables one with NEW_AND_OLD_IMAGES\.$"
    )
    with pytest.raises(SettingsError, match=message):
        new_store.init(streams=True)
    assert list_tables(empty_connection) == [empty_connection.table("Tenants")]
    new_store.init()


# Tables that CloudFormation manages. DynamoDB Local has no tags.


def tag(connection: Connection, name: str, **tags: str) -> None:
    connection.client.tag_resource(
        ResourceArn=describe(connection, name)["TableArn"],
        Tags=[{"Key": key.replace("_", ":"), "Value": value} for key, value in tags.items()],
    )


class Changes:
    """Counts the calls that change tables."""

    def __init__(self, connection: Connection) -> None:
        self.made: list[str] = []
        for operation in ("CreateTable", "UpdateTable", "UpdateTimeToLive", "UpdateContinuousBackups", "PutItem"):
            connection.client.meta.events.register(f"before-call.dynamodb.{operation}", self._record)

    def _record(self, model: Any, **_: Any) -> None:
        self.made.append(model.name)


@on_moto
@pytest.mark.parametrize("tags", [{"aws_cloudformation_stack-name": "inbox-dev-data"}, {"ManagedBy": "CloudFormation"}])
def test_tables_of_cloudformation_are_only_checked(
    new_store: DynamoDBStore, empty_connection: Connection, tags: dict[str, str]
) -> None:
    new_store.init(streams=True)
    for name in DEFINITIONS:
        tag(empty_connection, name, Owner="shop", **tags)
    changes = Changes(empty_connection)
    new_store.init(streams=True)
    # The schema version.
    assert changes.made == ["PutItem"]


@on_moto
def test_error_names_what_tables_of_cloudformation_lack(new_store: DynamoDBStore, empty_connection: Connection) -> None:
    create_table(empty_connection, "Events", without_indexes("Events", "event-type-index"))
    create_table(empty_connection, "Tenants", DEFINITIONS["Tenants"])
    tag(empty_connection, "Events", ManagedBy="CloudFormation")
    changes = Changes(empty_connection)
    with pytest.raises(SettingsError) as caught:
        new_store.init(streams=True)
    events, keys = empty_connection.table("Events"), empty_connection.table("TenantApiKeys")
    assert str(caught.value) == (
        "CloudFormation manages the tables, so `inbox init` does not change them. Missing:"
        f" the table {keys}, the index event-type-index of {events}, TTL of {events},"
        f" point-in-time recovery of {events}, a stream with NEW_AND_OLD_IMAGES of {events}."
        " Update their stack with deploy/cloudformation/data.yaml (`deploy/stack ENVIRONMENT data`), then run"
        " `inbox init` again."
    )
    assert changes.made == []


@on_moto
def test_tables_with_other_tags_are_upgraded(new_store: DynamoDBStore, empty_connection: Connection) -> None:
    create_all(empty_connection, Events=without_indexes("Events", "event-type-index"))
    for name in DEFINITIONS:
        # More than one page of tags.
        tag(empty_connection, name, ManagedBy="hand", **{f"tag-{number}": "x" for number in range(20)})
    new_store.init()
    assert "event-type-index" in indexes_of(empty_connection, "Events")
