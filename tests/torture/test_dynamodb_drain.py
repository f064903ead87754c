"""Four processes drain one inbox in DynamoDB while producers send: at the usual cost, and in order."""

import json
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import pytest

from inbox.domain.events import DEFAULT_INBOX, NewEvent, PageSize
from tests.engines.aws import aws_environment
from tests.engines.harnesses import DynamoDBHarness
from tests.torture.draining import TENANT, Share, Task, drain, open_store

PROCESSES, PRODUCERS = 4, 4
TOGETHER = 5
SETTLE_MS = 500
TIMEOUT_SECONDS = 300
MAX_UNITS, MAX_FAILED_CONDITIONS = 3.3, 0.1


def send(task: Task, producer: int, count: int) -> None:
    store, _ = open_store(task)
    for first in range(0, count, TOGETHER):
        payloads = [{"producer": producer, "number": first + each} for each in range(TOGETHER)]
        events = [NewEvent(str(uuid.uuid4()), "order.created", json.dumps(each).encode()) for each in payloads]
        now_ms = store.now_ms()
        store.events.put(TENANT, events, now_ms, now_ms // 1000 + 3600)
    store.close()


@pytest.mark.usefixtures("on_dynamodb_local")
def test_processes_drain_an_inbox_in_order_and_at_the_usual_cost(
    dynamodb_local_url: str,
    torture: bool,
    record_property: Callable[[str, object], None],
) -> None:
    events_per_producer = (5_000 if torture else 1_000) // PRODUCERS
    expected = events_per_producer * PRODUCERS
    harness = DynamoDBHarness()
    task = Task(aws_environment(dynamodb_local_url), harness.prefix, SETTLE_MS, expected, TIMEOUT_SECONDS)
    context = get_context("spawn")
    drained, queue = context.Value("i", 0), context.Queue()
    processes = [context.Process(target=drain, args=(task, drained, queue)) for _ in range(PROCESSES)]
    try:
        for process in processes:
            process.start()
        began = time.monotonic()
        with ThreadPoolExecutor(PRODUCERS) as pool:
            list(pool.map(lambda producer: send(task, producer, events_per_producer), range(PRODUCERS)))
        shares: list[Share] = [queue.get(timeout=2 * TIMEOUT_SECONDS) for _ in processes]
        seconds = time.monotonic() - began
        rest = harness.store.events.claim(TENANT, DEFAULT_INBOX, PageSize(500, 1_000_000), harness.store.now_ms())
    finally:
        for process in processes:
            process.kill()
            process.join()
        harness.close()

    units = sum(share.write_units for share in shares) / expected
    failed_conditions = sum(share.failed_conditions for share in shares) / expected
    record_property("processes", PROCESSES)
    record_property("events", expected)
    record_property("events per second", f"{expected / seconds:.0f}")
    record_property("write units per event", f"{units:.2f}")
    record_property("failed conditions per event", f"{failed_conditions:.3f}")
    sent = [(producer, number) for producer in range(PRODUCERS) for number in range(events_per_producer)]
    assert sorted(event for share in shares for event in share.events) == sent
    assert rest.events == []
    assert sum(bool(share.events) for share in shares) > 1
    for share in shares:
        # Sorting by producer keeps the order of the numbers.
        by_producer = sorted(share.events, key=lambda event: event[0])
        assert by_producer == sorted(share.events)
    assert units < MAX_UNITS
    assert failed_conditions < MAX_FAILED_CONDITIONS
