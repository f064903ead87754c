"""A process that drains an inbox in DynamoDB, with clients and a clock of its own."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from multiprocessing.sharedctypes import Synchronized

from inbox.domain.events import DEFAULT_INBOX, PageSize
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from tests.engines.harnesses import MAX_DELIVERIES
from tests.engines.wire import Wire

TENANT = "acme"
_SIZE = PageSize(100, 1_000_000)
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True)
class Task:
    environment: Mapping[str, str]
    table_prefix: str
    settle_ms: int
    expected: int
    """Events that all processes together have to drain."""
    timeout_seconds: float


@dataclass
class Share:
    """The events of one process, each with its producer and number, in the order in which they came."""

    events: list[tuple[int, int]] = field(default_factory=list)
    write_units: float = 0
    failed_conditions: int = 0


def open_store(task: Task) -> tuple[DynamoDBStore, Wire]:
    os.environ.update(task.environment)
    connection = Connection(task.table_prefix, 4)
    return DynamoDBStore(connection, MAX_DELIVERIES, settle_ms=task.settle_ms), Wire(connection)


def drain(task: Task, drained: "Synchronized[int]", shares: "Queue[Share]") -> None:
    """Polls until all processes together have drained the expected events, or the time is over."""
    store, wire = open_store(task)
    wire.measures_statements = True
    share, deadline = Share(), time.monotonic() + task.timeout_seconds
    while drained.value < task.expected and time.monotonic() < deadline:
        page = store.events.claim(TENANT, DEFAULT_INBOX, _SIZE, store.now_ms()).events
        payloads = [json.loads(event.payload) for event in page]
        share.events += [(payload["producer"], payload["number"]) for payload in payloads]
        with drained.get_lock():
            drained.value += len(page)
        if not page:
            time.sleep(_PAUSE_SECONDS)
    # Writes the counters, which cost units too.
    store.close()
    share.write_units, share.failed_conditions = wire.write_units, wire.failed_conditions
    shares.put(share)
