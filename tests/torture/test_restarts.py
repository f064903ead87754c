"""A rolling restart of two services on one store under load: no response is lost."""

import random
import signal
import time
from collections.abc import Callable

from tests.service import Service, until
from tests.torture.delivery_report import DeliveryReport, Outcome
from tests.torture.workload import Workload


def test_rolling_restart_loses_and_duplicates_nothing(
    service_on_each_engine: Service,
    new_service: Callable[[], Service],
    torture: bool,
    report_deliveries: Callable[[DeliveryReport], None],
    new_workload: Callable[..., Workload],
) -> None:
    one, other = service_on_each_engine, new_service()
    other.variables = one.variables | {"INBOX_STORE": one.environment["INBOX_STORE"]}
    workload = new_workload(one, other)
    one.start()
    other.start()
    workload.add_producers(4)
    workload.add_consumers(4)
    workload.add_consumers(4, lease_seconds=10)
    restarts = [(service, restart) for restart in (_stop_and_start, _replace_workers) for service in (one, other)]
    restarts = restarts * 10 if torture else [(one, _stop_and_start), (other, _replace_workers)]

    def run_restarts() -> None:
        for service, restart in restarts:
            workload.wait_for(20)
            time.sleep(random.uniform(0, 0.5))
            restart(service)

    report = workload.work(during=run_restarts)

    report_deliveries(report)
    # A request without a response was never started, unless DynamoDB Local was too slow for it.
    if not (one.is_on_dynamodb and report.unavailable):
        assert (report.unavailable, report.unconfirmed, report.outcomes[Outcome.UNREAD]) == (0, 0, [])
    assert report.accepted >= 20 * len(restarts)


def _stop_and_start(service: Service) -> None:
    service.signal_master()
    service.wait_until_stopped()
    service.start()


def _replace_workers(service: Service) -> None:
    """Replaces the workers of the same master."""
    before = set(service.worker_pids)
    service.signal_master(signal.SIGHUP)
    # A worker finishes its calls before it exits, and DynamoDB Local may be slow.
    until(lambda: not before & set(service.worker_pids), 60)
