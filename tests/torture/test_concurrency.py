"""Many producers and consumers at once: each event is delivered once, and the events of each producer in order."""

from collections.abc import Callable

import pytest

from tests.e2e.consumers import Client
from tests.service import Service
from tests.torture.counter_checks import count_wrong_counters
from tests.torture.delivery_report import DeliveryReport, Outcome
from tests.torture.workload import Workload

PRODUCERS, CONSUMERS = 8, 16


@pytest.mark.parametrize("lease_seconds", [None, 30], ids=["consume", "lease"])
def test_each_event_is_delivered_once_and_in_order_of_its_producer(
    service_on_each_engine: Service,
    lease_seconds: int | None,
    torture: bool,
    report_deliveries: Callable[[DeliveryReport], None],
    new_workload: Callable[..., Workload],
) -> None:
    long_run, short_run = (10_000, 200) if service_on_each_engine.is_on_dynamodb else (100_000, 1_000)
    min_events = long_run if torture else short_run
    workload = new_workload(service_on_each_engine)
    service_on_each_engine.start()
    workload.add_producers(PRODUCERS)
    workload.add_consumers(CONSUMERS, lease_seconds)

    report = workload.work(during=lambda: workload.wait_for(min_events))

    report_deliveries(report)
    assert workload.lost_responses == 0
    assert report.accepted >= min_events
    # If DynamoDB Local timed out on a busy machine, the outcome of some requests is unknown.
    if not (service_on_each_engine.is_on_dynamodb and report.unavailable):
        assert (report.unavailable, report.unconfirmed, report.outcomes[Outcome.UNREAD]) == (0, 0, [])
        assert (report.leases_lost, report.redelivered) == (0, 0)
        assert count_wrong_counters(service_on_each_engine) == 0


def test_events_sent_through_several_workers_stay_in_order(service_on_each_engine: Service) -> None:
    client = Client(service_on_each_engine, service_on_each_engine.create_key("acme"))
    service_on_each_engine.start()
    for number in range(200):
        client.send({"n": number})

    events = client.get("/inbox?limit=500")
    assert [event["payload"]["n"] for event in events] == list(range(200))
    assert [event["timestamp"] for event in events] == sorted(event["timestamp"] for event in events)
