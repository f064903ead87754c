"""Many producers and consumers of two tenants at once: each event is delivered once, each producer's in order."""

from collections.abc import Callable

import pytest
import requests

from tests.service import Service, bearer
from tests.torture.counter_checks import miscounted
from tests.torture.delivery_report import Class, DeliveryReport
from tests.torture.workload import Workload

PRODUCERS, POLLERS = 8, 16


@pytest.mark.parametrize("lease_seconds", [None, 30], ids=["consume", "lease"])
def test_each_event_is_delivered_once_and_in_order_of_its_producer(
    on_each_engine: Service,
    lease_seconds: int | None,
    torture: bool,
    report_deliveries: Callable[[DeliveryReport], None],
    workload_of: Callable[..., Workload],
) -> None:
    at_length, short = (10_000, 200) if on_each_engine.is_on_dynamodb else (100_000, 1_000)
    events = at_length if torture else short
    workload = workload_of(on_each_engine)
    on_each_engine.start()
    workload.add_producers(PRODUCERS)
    workload.add_consumers(POLLERS, lease_seconds)

    report = workload.work(during=lambda: workload.wait_for(events))

    report_deliveries(report)
    assert workload.unanswered == 0
    assert report.accepted >= events
    # If DynamoDB Local timed out on a busy machine, the outcome of some requests is unknown.
    if not (on_each_engine.is_on_dynamodb and report.unavailable):
        assert (report.unavailable, report.unconfirmed, report.classes[Class.UNREAD]) == (0, 0, [])
        assert (report.leases_lost, report.came_again) == (0, 0)
        assert miscounted(on_each_engine) == 0


def test_events_sent_through_several_workers_stay_in_order(on_each_engine: Service) -> None:
    key = on_each_engine.create_key("acme")
    on_each_engine.start()
    for number in range(200):
        # A new connection per request, so that every worker gets some.
        answer = requests.post(f"{on_each_engine.url}/events", json={"n": number}, headers=bearer(key), timeout=30)
        assert answer.status_code == 201

    taken = requests.get(f"{on_each_engine.url}/inbox?limit=500", headers=bearer(key), timeout=30).json()
    assert [event["payload"]["n"] for event in taken] == list(range(200))
    assert [event["timestamp"] for event in taken] == sorted(event["timestamp"] for event in taken)
