"""Faults between the service and DynamoDB for minutes: no accepted event is lost or delivered twice."""

import itertools
import logging
import random
import time
from collections.abc import Callable, Iterator

import pytest

from tests.service import Service
from tests.torture.conftest import TENANTS
from tests.torture.delivery_report import Class, DeliveryReport
from tests.torture.fault_proxy import Fault, FaultProxy, Odds
from tests.torture.workload import Workload

LEASE_SECONDS = 3
# Less likely, because each blocks its caller for seconds.
TIMEOUTS = (Fault.LATE, Fault.DROPPED, Fault.RESPONSE_DROPPED)
BAD: Odds = {fault: 0.01 if fault in TIMEOUTS else 0.03 for fault in Fault}
SILENT: Odds = {Fault.DROPPED: 1}
QUIET: Odds = {}

_log = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def proxy(dynamodb_local_url: str) -> Iterator[FaultProxy]:
    proxy = FaultProxy(dynamodb_local_url, seed=random.randrange(10**6))
    with proxy.running():
        yield proxy


@pytest.fixture(scope="module")
def behind_the_proxy(proxy: FaultProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that all tests share, because starting it takes longer than a test. Each test has its own tenants."""
    service = Service(tmp_path_factory.mktemp("behind-the-proxy"))
    service.keep_in_dynamodb(proxy.url)
    assert service.run("init").returncode == 0
    service.start()
    yield service
    service.kill()


@pytest.fixture
def workload_behind(behind_the_proxy: Service, proxy: FaultProxy) -> Iterator[Callable[..., Workload]]:
    workloads: list[Workload] = []

    def gather(*tenants: str) -> Workload:
        keys = {tenant: behind_the_proxy.create_key(tenant) for tenant in tenants}
        workloads.append(Workload([behind_the_proxy], keys))
        return workloads[-1]

    # pytest prints the log of a failed test.
    _log.warning("the seed of the faults is %d", proxy.seed)
    yield gather
    proxy.odds = QUIET
    for workload in workloads:
        workload.leave()


def test_faults_lose_and_duplicate_no_accepted_event(
    proxy: FaultProxy,
    torture: bool,
    report_deliveries: Callable[[DeliveryReport], None],
    workload_behind: Callable[..., Workload],
) -> None:
    workload = workload_behind(*TENANTS)
    workload.add_producers(8)
    workload.add_consumers(8)
    workload.add_consumers(4, LEASE_SECONDS)
    for consumer in workload.consumers:
        consumer.log.in_order = False

    during = workload.work(during=lambda: inject_faults(proxy, 180 if torture else 4))
    # The service recovers without a restart.
    report = workload.work(during=lambda: workload.wait_for(50))

    report_deliveries(report)
    assert (report.answers_lost, report.unavailable) == (during.answers_lost, during.unavailable)
    assert proxy.fired.keys() == set(Fault) if torture else proxy.fired
    unread = report.classes[Class.UNREAD]
    assert sorted(workload.recover(unread)) == sorted(unread)


def test_consumer_that_repeats_polls_gets_each_event_once_and_in_order(
    proxy: FaultProxy,
    torture: bool,
    report_deliveries: Callable[[DeliveryReport], None],
    workload_behind: Callable[..., Workload],
) -> None:
    workload = workload_behind("initech")
    workload.add_producers(4)
    workload.add_consumers(1)
    workload.consumers[0].repeatable = True
    workload.consumers[0].limit = 30

    report = workload.work(during=lambda: inject_faults(proxy, 60 if torture else 2))

    report_deliveries(report)
    assert report.accepted
    assert report.classes[Class.UNREAD] == []


def inject_faults(proxy: FaultProxy, seconds: float) -> None:
    """Alternates periods with faults and without. In every third period with faults, no call gets a response."""
    end = time.monotonic() + seconds
    for odds in itertools.cycle([BAD, BAD, SILENT]):
        proxy.odds = odds
        time.sleep(min(5, seconds))
        proxy.odds = QUIET
        if time.monotonic() > end:
            return
        time.sleep(1)
