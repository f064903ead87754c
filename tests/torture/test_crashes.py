"""A worker, the master or all processes are killed at any moment: accepted events are stored, and delivered once."""

import random
import signal
import time
from collections.abc import Callable

from tests.service import Service
from tests.torture.counter_checks import count_wrong_counters, read_totals
from tests.torture.delivery_report import DeliveryReport
from tests.torture.stored_events import read_events
from tests.torture.workload import Workload


def test_crashes_lose_and_duplicate_no_accepted_event(
    service_on_each_engine: Service,
    torture: bool,
    report_deliveries: Callable[[DeliveryReport], None],
    new_workload: Callable[..., Workload],
) -> None:
    service = service_on_each_engine
    if service.is_on_dynamodb:
        cycles, events = (20, 10_000) if torture else (2, 200)
    else:
        cycles, events = (100, 100_000) if torture else (5, 2_500)
    workload = new_workload(service)
    service.start()
    workload.add_producers(8)
    workload.add_consumers(4)
    workload.add_consumers(4, lease_seconds=5)
    for consumer in workload.consumers:
        # A claim on DynamoDB is many small writes. If a worker dies in between, another consumer gets the remaining
        # events, possibly after later ones.
        consumer.log.in_order = not service.is_on_dynamodb

    def crash() -> None:
        ways = (_kill_a_worker, _kill_all_workers, _kill_master, _kill_all_processes)
        # In random order, each equally often.
        kills = [way for _ in range(0, cycles, len(ways)) for way in random.sample(ways, len(ways))]
        for kill in kills[:cycles]:
            workload.wait_for(events // cycles)
            time.sleep(random.uniform(0, 0.5))
            kill(service)
            if not service.is_on_dynamodb:
                read_events(service.folder / "inbox.db")

    report = workload.work(during=crash)

    report_deliveries(report)
    assert report.accepted >= events
    _check_counters(workload, service)
    workload.check_replay(report)


def _kill_a_worker(service: Service) -> None:
    service.signal_workers(signal.SIGKILL, random.sample(service.worker_pids, 1))
    service.wait_until_ready()


def _kill_all_workers(service: Service) -> None:
    service.signal_workers(signal.SIGKILL, service.worker_pids)
    service.wait_until_ready()


def _kill_master(service: Service) -> None:
    service.kill_master()
    service.start()


def _kill_all_processes(service: Service) -> None:
    service.kill()
    service.start()


def _check_counters(workload: Workload, service: Service) -> None:
    if not service.is_on_dynamodb:
        assert count_wrong_counters(service) == 0
        return
    # Counts that killed processes had not written are missing, but nothing is counted twice.
    service.stop()
    service.start()
    counted = {tenant: read_totals(service, key) for tenant, key in workload.keys.items()}
    count_wrong_counters(service)
    for tenant, key in workload.keys.items():
        recounted = read_totals(service, key)
        for name in ("received", "delivered", "bytes"):
            assert 0 < counted[tenant][name] <= recounted[name]
