"""Worker, parent or all processes are killed at any moment: events that got a 2xx are stored, and delivered once."""

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from tests.service import Service
from tests.torture.counter_checks import miscounted, totals
from tests.torture.delivery_report import Class, DeliveryReport
from tests.torture.workload import Workload

LEASE_SECONDS = 5


def test_crashes_lose_and_duplicate_no_accepted_event(
    on_each_engine: Service,
    torture: bool,
    report_deliveries: Callable[[DeliveryReport], None],
    workload_of: Callable[..., Workload],
) -> None:
    service = on_each_engine
    cycles, events = _length(service, torture)
    workload = workload_of(service)
    service.start()
    workload.add_producers(8)
    workload.add_consumers(4)
    workload.add_consumers(4, LEASE_SECONDS)
    for consumer in workload.consumers:
        # A claim on DynamoDB is many small writes. If a worker dies in between, another consumer gets the remaining
        # events, possibly after later ones.
        consumer.log.in_order = not service.is_on_dynamodb

    def crash() -> None:
        kinds = (_kill_a_worker, _kill_the_workers, _kill_the_parent, _kill_all)
        # In random order, each equally often.
        turns = [kind for _ in range(0, cycles, len(kinds)) for kind in random.sample(kinds, len(kinds))]
        for kill in turns[:cycles]:
            workload.wait_for(events // cycles)
            time.sleep(random.uniform(0, 0.5))
            kill(service)
            if not service.is_on_dynamodb:
                _check_integrity(service.folder / "inbox.db")

    report = workload.work(during=crash)

    report_deliveries(report)
    assert report.accepted >= events
    _check_counters(workload, service)
    _recover(workload, report)


def _length(service: Service, torture: bool) -> tuple[int, int]:
    if service.is_on_dynamodb:
        return (20, 10_000) if torture else (2, 200)
    return (100, 100_000) if torture else (5, 2_500)


def _kill_a_worker(service: Service) -> None:
    service.signal_workers(signal.SIGKILL, random.sample(service.workers, 1))
    service.wait_until_ready()


def _kill_the_workers(service: Service) -> None:
    service.signal_workers(signal.SIGKILL, service.workers)
    service.wait_until_ready()


def _kill_the_parent(service: Service) -> None:
    service.kill_master()
    service.start()


def _kill_all(service: Service) -> None:
    service.kill()
    service.start()


def _check_integrity(file: Path) -> None:
    connection = apsw.Connection(str(file))
    try:
        assert connection.pragma("integrity_check") == "ok"
    finally:
        connection.close()


def _check_counters(workload: Workload, service: Service) -> None:
    if not service.is_on_dynamodb:
        assert miscounted(service) == 0
        return
    # Counts that killed processes had not written are missing, but nothing is counted twice.
    service.stop()
    service.start()
    counted = {tenant: totals(service, key) for tenant, key in workload.keys.items()}
    miscounted(service)
    for tenant, key in workload.keys.items():
        recounted = totals(service, key)
        for name in ("received", "delivered", "bytes"):
            assert 0 < counted[tenant][name] <= recounted[name]


def _recover(workload: Workload, report: DeliveryReport) -> None:
    """Checks that a replay delivers the events of lost responses."""
    unread = report.classes[Class.UNREAD]
    assert sorted(workload.recover(unread)) == sorted(unread)
