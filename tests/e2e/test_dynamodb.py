"""The service and its commands on DynamoDB."""

import secrets
import socket
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import pairwise

import pytest
import requests

from inbox.domain.keys import MAX_KEYS, KeyStatus
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from tests.dynamodb.conftest import api_key, total_counts
from tests.engines.aws import aws_environment
from tests.engines.harnesses import MAX_DELIVERIES
from tests.service import Service, bearer, until


@pytest.fixture
def engine() -> str:
    return "dynamodb_local"


@pytest.fixture
def on_dynamodb(request: pytest.FixtureRequest, engine: str, new_service: Callable[[], Service]) -> Service:
    """Returns a service that is not started yet and has no tables."""
    service = new_service()
    service.keep_in_dynamodb(request.getfixturevalue(f"{engine}_url"))
    return service


@pytest.mark.parametrize("engine", ["moto", "dynamodb_local"])
def test_event_is_polled_from_new_tables(on_dynamodb: Service) -> None:
    for _ in range(2):
        made = on_dynamodb.invoke("init")
        assert (made.returncode, made.stdout) == (0, ""), made.stderr
    key = on_dynamodb.create_key("acme")
    del on_dynamodb.variables["INBOX_SETTLE_MS"]
    on_dynamodb.start()

    sent = requests.post(
        f"{on_dynamodb.url}/events",
        json={"event_type": "order.created", "payload": {"order": 1001, "total": 1.5}},
        headers=bearer(key) | {"Idempotency-Key": "order-1001"},
        timeout=30,
    )
    assert sent.status_code == 201, sent.text
    # The event can be polled once it has settled.
    (event,) = requests.get(f"{on_dynamodb.url}/inbox?wait=20", headers=bearer(key), timeout=30).json()
    assert (event["id"], event["payload"]) == (sent.json()["id"], {"order": 1001, "total": 1.5})
    assert requests.get(f"{on_dynamodb.url}/inbox", headers=bearer(key), timeout=30).json() == []


@pytest.mark.usefixtures("on_dynamodb_local")
def test_stop_writes_counts_while_connections_are_open(on_dynamodb: Service) -> None:
    on_dynamodb.invoke("init")
    key = on_dynamodb.create_key("acme")
    on_dynamodb.start()
    for number in range(8):
        requests.post(f"{on_dynamodb.url}/events", json={"n": number}, headers=bearer(key), timeout=30)
    prefix = on_dynamodb.variables["INBOX_TABLE_PREFIX"]
    with closing(DynamoDBStore(Connection(prefix, 1), MAX_DELIVERIES)) as store:
        assert total_counts(store, "acme").received == 0
        with ExitStack() as held:
            # Enough connections for each worker to get one.
            for _ in range(8):
                connection = held.enter_context(socket.create_connection(("127.0.0.1", on_dynamodb.port)))
                connection.sendall(b"POST /events HTTP/1.1\r\n")
            on_dynamodb.signal_master()
            until(lambda: total_counts(store, "acme").received == 8)
        on_dynamodb.wait_until_stopped()


def test_missing_tables_are_an_error_at_the_start(on_dynamodb: Service) -> None:
    refused = on_dynamodb.run("serve")
    assert refused.returncode == 1
    message = "A table is missing in DynamoDB. Check AWS_REGION and INBOX_TABLE_PREFIX, or run `inbox init`."
    assert refused.stderr == f"error: {message}\n"


def test_quickstart_creates_its_tables(on_dynamodb: Service) -> None:
    on_dynamodb.start("quickstart")
    assert "Polling Inbox is running." in on_dynamodb.log.read_text()


def test_event_that_is_too_large_for_dynamodb_is_refused(on_dynamodb: Service) -> None:
    on_dynamodb.variables["INBOX_MAX_EVENT_BYTES"] = "2000000"
    on_dynamodb.invoke("init")
    key = on_dynamodb.create_key("acme")
    on_dynamodb.start()

    noise = {"payload": {"noise": secrets.token_hex(500_000)}}
    for path, body, pointers in (("/events", noise, None), ("/events/batch", [{"payload": {}}, noise], ["/1"])):
        refused = requests.post(f"{on_dynamodb.url}{path}", json=body, headers=bearer(key), timeout=30)
        assert refused.status_code == 413, refused.text
        assert [error["pointer"] for error in refused.json().get("errors", [])] == (pointers or [])
    assert requests.get(f"{on_dynamodb.url}/inbox", headers=bearer(key), timeout=30).json() == []


def test_events_copied_from_store_to_store_are_polled(
    service: Service, on_dynamodb: Service, new_service: Callable[[], Service]
) -> None:
    key = service.create_key("acme")
    service.start()
    for number in range(3):
        requests.post(f"{service.url}/events", json={"number": number}, headers=bearer(key), timeout=30)
    service.stop()
    last = new_service()
    last.invoke("init")
    other_prefix = on_dynamodb.variables["INBOX_TABLE_PREFIX"] + "2-"
    on_dynamodb.invoke("init")
    missing = on_dynamodb.invoke("copy", "--from", "dynamodb://", "--to", f"dynamodb://{other_prefix}")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr.startswith("error: --to: A table is missing in DynamoDB.")
    on_dynamodb.invoke("init", INBOX_TABLE_PREFIX=other_prefix)

    urls = [f"sqlite:///{service.folder}/inbox.db", "dynamodb://", f"dynamodb://{other_prefix}"]
    urls.append(f"sqlite:///{last.folder}/inbox.db")
    for source, target in pairwise(urls):
        for written in (3, 0):
            copied = on_dynamodb.invoke("copy", "--from", source, "--to", target)
            assert (copied.returncode, copied.stderr) == (0, "")
            assert copied.stdout == f"1 tenants, 1 keys, 0 inboxes, 3 events, {written} of them new\n"
    for each in (on_dynamodb, last):
        each.start()
        polled = requests.get(f"{each.url}/inbox", headers=bearer(key), timeout=30).json()
        assert [event["payload"]["number"] for event in polled] == [0, 1, 2]


def test_tenants_are_sharded_on_dynamodb_only(service: Service, on_dynamodb: Service) -> None:
    on_dynamodb.invoke("init")
    for each, code in ((service, 1), (on_dynamodb, 0)):
        each.invoke("tenants", "create", "acme")
        assert each.invoke("tenants", "shard", "acme", "4").returncode == code
    refused = service.invoke("tenants", "shard", "acme", "4")
    assert refused.stderr == "error: `inbox tenants shard` requires DynamoDB.\n"
    assert on_dynamodb.invoke("tenants", "shard", "nobody", "4").returncode == 1
    assert on_dynamodb.invoke("tenants", "shard", "acme", "0").returncode == 2


@pytest.mark.usefixtures("on_dynamodb_local")
def test_creating_a_key_deletes_revoked_keys_above_the_maximum(on_dynamodb: Service) -> None:
    on_dynamodb.invoke("init")
    on_dynamodb.invoke("tenants", "create", "acme")
    prefix = on_dynamodb.variables["INBOX_TABLE_PREFIX"]
    with closing(DynamoDBStore(Connection(prefix, 1), MAX_DELIVERIES)) as store:
        revoked = [replace(api_key("acme"), status=KeyStatus.REVOKED) for _ in range(MAX_KEYS + 1)]
        for key in revoked:
            store.keys.create(key)
        assert on_dynamodb.invoke("keys", "create", "acme").returncode == 0
        left = {key.key_id for key in store.keys.all("acme")} & {key.key_id for key in revoked}
    assert len(left) == MAX_KEYS


@pytest.mark.parametrize("missing", ["AWS_REGION", "AWS_ENDPOINT_URL_DYNAMODB"])
def test_missing_aws_setting_prints_one_line(service: Service, missing: str) -> None:
    environment = aws_environment("http://127.0.0.1:1") | {"AWS_EC2_METADATA_DISABLED": "true"}
    if missing == "AWS_REGION":
        environment.pop(missing)
    service.variables = {**environment, "INBOX_STORE": "dynamodb://"}
    refused = service.run("tenants", "list")
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert ("AWS_REGION" if missing == "AWS_REGION" else "DynamoDB cannot be reached.") in refused.stderr
