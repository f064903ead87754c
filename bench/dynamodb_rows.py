"""CPU time per event of the DynamoDB store, against boto3 with one call per event.

The engine is DynamoDB Local in another process, whose speed does not matter.
"""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
import orjson

from bench.http_load import CONNECTIONS
from bench.rounds import Round
from bench.sample_data import PAGE_SIZE, PAYLOAD, RETENTION_SECONDS, TENANT
from inbox.domain.events import DEFAULT_INBOX, NewEvent, Status, random_event_id
from inbox.settings import Settings
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.event_states import new_state
from inbox.store.dynamodb.items import to_item
from inbox.store.dynamodb.layout import (
    EVENTS,
    STATUS_INDEX,
    UNSHARDED,
    key_of,
    make_order_key,
    make_status_key,
    order_key_of,
)
from inbox.store.dynamodb.shards import Place
from tests.engines import dynamodb_local

ROUNDS = 5
OUR_EVENTS = 1_000
REFERENCE_EVENTS = 200

_OTHER_TENANT = "boto3"
_UNDELIVERED = "gsi1pk = :tenant AND begins_with(gsi1sk, :undelivered)"
_DELIVER = "SET #status = :delivered, gsi1sk = :now, deliveries = deliveries + :one, delivered_at = :at"


def measure_sends(_folder: Path) -> list[Round]:
    """Returns milliseconds of CPU per event, sent by 32 threads and, as the reference, by boto3's put_item in a loop.

    boto3 does not need less CPU per event in 32 threads.
    """
    with _open_clients() as (store, client):

        def produce(share: list[NewEvent]) -> None:
            for event in share:
                store.events.put(TENANT, [event], _now_ms(), _expires_at_s())

        def put_with_store() -> None:
            list(pool.map(produce, [events[producer::CONNECTIONS] for producer in range(CONNECTIONS)]))

        def put_with_boto3() -> None:
            for item in items:
                client.put_item(TableName=EVENTS, Item=item)

        rounds = []
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            for _ in range(ROUNDS + 1):
                events, items = (
                    _create_events(OUR_EVENTS),
                    [_build_item(event) for event in _create_events(REFERENCE_EVENTS)],
                )
                rounds.append(Round(_cpu_ms(put_with_store) / OUR_EVENTS, _cpu_ms(put_with_boto3) / REFERENCE_EVENTS))
        return rounds[1:]


def measure_polls(_folder: Path) -> list[Round]:
    """Returns milliseconds of CPU per event: claims of 100 and, as the reference, queries with an update per event."""
    with _open_clients() as (store, client):
        rounds = []
        for _ in range(ROUNDS + 1):
            for tenant, events in ((TENANT, OUR_EVENTS), (_OTHER_TENANT, REFERENCE_EVENTS)):
                for _ in range(events // PAGE_SIZE.events):
                    store.events.put(tenant, _create_events(PAGE_SIZE.events), _now_ms(), _expires_at_s())
            ours = _cpu_ms(lambda: _claim_all(store)) / OUR_EVENTS
            rounds.append(Round(ours, _cpu_ms(lambda: _update_all(client)) / REFERENCE_EVENTS))
        return rounds[1:]


def _claim_all(store: DynamoDBStore) -> None:
    for _ in range(OUR_EVENTS // PAGE_SIZE.events):
        page = store.events.claim(TENANT, DEFAULT_INBOX, PAGE_SIZE, _now_ms())
        if len(page.events) != PAGE_SIZE.events:
            raise RuntimeError(f"the claim returned {len(page.events)} events instead of {PAGE_SIZE.events}")


def _update_all(client: Any) -> None:
    for _ in range(REFERENCE_EVENTS // PAGE_SIZE.events):
        found = client.query(
            TableName=EVENTS,
            IndexName=STATUS_INDEX,
            KeyConditionExpression=_UNDELIVERED,
            ExpressionAttributeValues={
                ":tenant": {"S": _OTHER_TENANT},
                ":undelivered": {"S": make_status_key(Status.UNDELIVERED, "")},
            },
            Limit=PAGE_SIZE.events,
        )["Items"]
        if len(found) != PAGE_SIZE.events:
            raise RuntimeError(f"the query returned {len(found)} events instead of {PAGE_SIZE.events}")
        for entry in found:
            _update(client, entry)


def _update(client: Any, entry: dict[str, Any]) -> None:
    client.update_item(
        TableName=EVENTS,
        Key=key_of(entry),
        UpdateExpression=_DELIVER,
        ConditionExpression="gsi1sk = :before",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={
            ":delivered": {"S": Status.DELIVERED},
            ":now": {"S": make_status_key(Status.DELIVERED, order_key_of(entry))},
            ":before": entry["gsi1sk"],
            ":one": {"N": "1"},
            ":at": {"N": str(_now_ms())},
        },
        # The index has no payloads.
        ReturnValues="ALL_NEW",
    )


@contextmanager
def _open_clients() -> Iterator[tuple[DynamoDBStore, Any]]:
    """Yields our store and a plain boto3 client on new tables."""
    with dynamodb_local.running() as url, patch.dict(os.environ, _environment(url)):
        settings = Settings()
        store = DynamoDBStore(Connection("", settings.threads), settings.max_deliveries)
        store.init()
        client = boto3.client("dynamodb")
        yield store, client
        client.close()
        store.close()


def _environment(url: str) -> dict[str, str]:
    # Not the environment of the tests: moto hooks into every client of their process.
    keys = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"}
    return keys | {"AWS_ENDPOINT_URL_DYNAMODB": url, "AWS_REGION": "eu-central-1", "AWS_DEFAULT_REGION": "eu-central-1"}


def _cpu_ms(work: Callable[[], None]) -> float:
    """Returns the CPU time that this process spends on `work`."""
    started = time.process_time()
    work()
    return 1000 * (time.process_time() - started)


def _create_events(count: int) -> list[NewEvent]:
    return [NewEvent(random_event_id(), "order.created", PAYLOAD.encode()) for _ in range(count)]


def _build_item(event: NewEvent) -> dict[str, Any]:
    """Returns the item that our store would write."""
    now_ms = _now_ms()
    order_key = make_order_key(now_ms, time.monotonic_ns(), "boto3x")
    state = new_state(Status.UNDELIVERED, order_key)
    item = to_item(_OTHER_TENANT, Place(UNSHARDED, UNSHARDED), event, now_ms, order_key, state, _expires_at_s())
    # Our store passes a payload as JSON text, which boto3 does not accept.
    plain_item: dict[str, Any] = orjson.loads(orjson.dumps(item))
    return plain_item


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _expires_at_s() -> int:
    return _now_ms() // 1000 + RETENTION_SECONDS
