"""Minutes of faults between the service and DynamoDB: no accepted event is lost or delivered twice."""

import itertools
import logging
import random
import time
from collections.abc import Callable, Iterator

import pytest

from tests.service import Service
from tests.torture.delivery_report import DeliveryReport, Outcome
from tests.torture.fault_proxy import Fault, FaultProxy, Odds
from tests.torture.workload import Workload

# Less likely, because each blocks its caller for seconds.
TIMEOUTS = (Fault.LATE, Fault.DROPPED, Fault.RESPONSE_DROPPED)
BAD: Odds = {fault: 0.01 if fault in TIMEOUTS else 0.03 for fault in Fault}
SILENT: Odds = {Fault.DROPPED: 1}
QUIET: Odds = {}


@pytest.fixture(scope="module")
def proxy(dynamodb_local_url: str) -> Iterator[FaultProxy]:
    proxy = FaultProxy(dynamodb_local_url, seed=random.randrange(10**6))
    with proxy.run():
        yield proxy


@pytest.fixture(scope="module")
def behind_the_proxy(proxy: FaultProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Returns a service that all tests share, because it starts slowly. Each test has its own tenants."""
    service = Service(tmp_path_factory.mktemp("behind-the-proxy"))
    service.keep_in_dynamodb(proxy.url)
    service.variables["INBOX_MAX_DELIVERIES"] = "1000000"
    assert service.run("init").returncode == 0
    service.start()
    yield service
    service.kill()


def test_faults_lose_and_duplicate_no_accepted_event(
    proxy: FaultProxy,
    torture: bool,
    report_deliveries: Callable[[DeliveryReport], None],
    behind_the_proxy: Service,
    new_workload: Callable[..., Workload],
) -> None:
    workload = new_workload(behind_the_proxy)
    workload.add_producers(8)
    workload.add_consumers(8)
    workload.add_consumers(4, lease_seconds=3)
    for consumer in workload.consumers:
        consumer.log.in_order = False

    faulty = workload.work(during=lambda: inject_faults(proxy, 180 if torture else 4))
    # The service recovers without a restart.
    report = workload.work(during=lambda: workload.wait_for(50))

    report_deliveries(report)
    assert (report.lost_responses, report.unavailable) == (faulty.lost_responses, faulty.unavailable)
    assert proxy.injected.keys() == set(Fault) if torture else proxy.injected
    workload.check_replay(report)


def test_consumer_that_repeats_polls_gets_each_event_once_and_in_order(
    proxy: FaultProxy,
    torture: bool,
    report_deliveries: Callable[[DeliveryReport], None],
    behind_the_proxy: Service,
    new_workload: Callable[..., Workload],
) -> None:
    workload = new_workload(behind_the_proxy, tenants=("initech",))
    workload.add_producers(4)
    workload.add_consumers(1)
    workload.consumers[0].repeatable = True
    workload.consumers[0].limit = 30

    report = workload.work(during=lambda: inject_faults(proxy, 60 if torture else 2))

    report_deliveries(report)
    assert report.accepted
    assert report.outcomes[Outcome.UNREAD] == []


def inject_faults(proxy: FaultProxy, seconds: float) -> None:
    """Alternates periods with faults and without. In every third period with faults, no call gets a response."""
    # pytest shows the log if the test fails.
    logging.getLogger(__name__).warning("the seed of the faults is %d", proxy.seed)
    end = time.monotonic() + seconds
    for odds in itertools.cycle([BAD, BAD, SILENT]):
        proxy.odds = odds
        time.sleep(min(5, seconds))
        proxy.odds = QUIET
        if time.monotonic() > end:
            return
        time.sleep(1)
