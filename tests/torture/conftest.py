"""A workload of two tenants, and the check of its delivery report."""

from collections.abc import Callable, Iterator

import pytest

from tests.service import Service
from tests.torture.delivery_report import DeliveryReport
from tests.torture.summary import DELIVERIES, short
from tests.torture.workload import Workload

TENANTS = ("acme", "globex")


@pytest.fixture
def workload_of() -> Iterator[Callable[..., Workload]]:
    """Returns a workload without clients for services that share a store."""
    workloads: list[Workload] = []

    def gather(*services: Service) -> Workload:
        for service in services:
            # On a slow machine leases expire, and an event that became a dead letter would count as lost.
            service.variables["INBOX_MAX_DELIVERIES"] = "1000000"
        workloads.append(Workload(services, {tenant: services[0].create_key(tenant) for tenant in TENANTS}))
        return workloads[-1]

    yield gather
    for workload in workloads:
        workload.leave()


@pytest.fixture
def report_deliveries(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Callable[[DeliveryReport], None]:
    """Records the figures, and fails if an event was lost, duplicated, foreign or out of order."""

    def report_deliveries(report: DeliveryReport) -> None:
        figures = report.figures()
        record_property(DELIVERIES, (short(request.node.nodeid), figures))
        assert report.wrong == {}, figures

    return report_deliveries
