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
from bench.sample_data import PAYLOAD, RETENTION_SECONDS, TENANT
from inbox.domain.events import DEFAULT_INBOX, NewEvent, PageSize, Status, random_event_id
from inbox.settings import Settings
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.event_states import undelivered_state
from inbox.store.dynamodb.items import to_item
from inbox.store.dynamodb.layout import EVENTS, STATUS_INDEX, UNSHARDED, key_of, order_key, order_key_of, status_key
from tests.engines import dynamodb_local

ROUNDS = 5
OURS = 1_000
REFERENCE = 200
AT_A_TIME = 100

_OTHER_TENANT = "boto3"
_ANY_SIZE = 1 << 40
_UNDELIVERED = "gsi1pk = :tenant AND begins_with(gsi1sk, :undelivered)"
_DELIVER = "SET #status = :delivered, gsi1sk = :now, deliveries = deliveries + :one, delivered_at = :at"


def sending(_folder: Path) -> list[Round]:
    """Returns milliseconds of CPU per event: 32 producers of single events, against boto3's put_item in a loop.

    boto3 does not need less CPU per event in 32 threads.
    """
    with _opened() as (store, client):

        def produce(share: list[NewEvent]) -> None:
            for event in share:
                store.events.put(TENANT, [event], time.time_ns() // 1_000_000, _end())

        def ours() -> None:
            list(pool.map(produce, [events[producer::CONNECTIONS] for producer in range(CONNECTIONS)]))

        def theirs() -> None:
            for item in items:
                client.put_item(TableName=EVENTS, Item=item)

        rounds = []
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            for _ in range(ROUNDS + 1):
                events, items = _events(OURS), [_item(event) for event in _events(REFERENCE)]
                rounds.append(Round(_cpu_ms(ours) / OURS, _cpu_ms(theirs) / REFERENCE))
        return rounds[1:]


def polling(_folder: Path) -> list[Round]:
    """Returns milliseconds of CPU per event: claims of 100, against queries of 100 and an update_item per event."""
    with _opened() as (store, client):
        rounds = []
        for _ in range(ROUNDS + 1):
            for tenant, events in ((TENANT, OURS), (_OTHER_TENANT, REFERENCE)):
                for _ in range(events // AT_A_TIME):
                    store.events.put(tenant, _events(AT_A_TIME), time.time_ns() // 1_000_000, _end())
            ours = _cpu_ms(lambda: _claim_all(store)) / OURS
            rounds.append(Round(ours, _cpu_ms(lambda: _update_all(client)) / REFERENCE))
        return rounds[1:]


def _claim_all(store: DynamoDBStore) -> None:
    for _ in range(OURS // AT_A_TIME):
        page = store.events.claim(TENANT, DEFAULT_INBOX, PageSize(AT_A_TIME, _ANY_SIZE), time.time_ns() // 1_000_000)
        if len(page.events) != AT_A_TIME:
            raise RuntimeError(f"the claim returned {len(page.events)} events instead of {AT_A_TIME}")


def _update_all(client: Any) -> None:
    for _ in range(REFERENCE // AT_A_TIME):
        found = client.query(
            TableName=EVENTS,
            IndexName=STATUS_INDEX,
            KeyConditionExpression=_UNDELIVERED,
            ExpressionAttributeValues={
                ":tenant": {"S": _OTHER_TENANT},
                ":undelivered": {"S": status_key(Status.UNDELIVERED, "")},
            },
            Limit=AT_A_TIME,
        )["Items"]
        if len(found) != AT_A_TIME:
            raise RuntimeError(f"the query returned {len(found)} events instead of {AT_A_TIME}")
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
            ":now": {"S": status_key(Status.DELIVERED, order_key_of(entry))},
            ":before": entry["gsi1sk"],
            ":one": {"N": "1"},
            ":at": {"N": str(time.time_ns() // 1_000_000)},
        },
        # The index has no payloads.
        ReturnValues="ALL_NEW",
    )


@contextmanager
def _opened() -> Iterator[tuple[DynamoDBStore, Any]]:
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


def _cpu_ms(act: Callable[[], None]) -> float:
    """Returns the CPU time of this process."""
    started = time.process_time()
    act()
    return 1000 * (time.process_time() - started)


def _events(count: int) -> list[NewEvent]:
    return [NewEvent(random_event_id(), "order.created", PAYLOAD.encode()) for _ in range(count)]


def _item(event: NewEvent) -> dict[str, Any]:
    """Returns the item that our store would write."""
    now = time.time_ns() // 1_000_000
    its_order_key = order_key(now, time.monotonic_ns(), "boto3x")
    item = to_item(_OTHER_TENANT, UNSHARDED, event, now, its_order_key, undelivered_state(its_order_key), _end())
    # Our store passes a payload as JSON text, which boto3 does not accept.
    found: dict[str, Any] = orjson.loads(orjson.dumps(item))
    return found


def _end() -> int:
    return time.time_ns() // 1_000_000 // 1000 + RETENTION_SECONDS
