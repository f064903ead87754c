"""Creates workloads, and checks their delivery reports."""

from collections.abc import Callable, Iterator

import pytest

from tests.service import Service
from tests.torture.delivery_report import DeliveryReport
from tests.torture.summary import DELIVERIES
from tests.torture.workload import Workload


@pytest.fixture
def new_workload() -> Iterator[Callable[..., Workload]]:
    """Returns a function that creates a workload without clients, for services that share a store."""
    workloads: list[Workload] = []

    def create(*services: Service, tenants: tuple[str, ...] = ("acme", "globex")) -> Workload:
        for service in services:
            # On a slow machine leases expire, and an event that became a dead letter would count as lost.
            service.variables["INBOX_MAX_DELIVERIES"] = "1000000"
        workloads.append(Workload(services, {tenant: services[0].create_key(tenant) for tenant in tenants}))
        return workloads[-1]

    yield create
    for workload in workloads:
        workload.close()


@pytest.fixture
def report_deliveries(record_property: Callable[[str, object], None]) -> Callable[[DeliveryReport], None]:
    """Returns a function that records the figures, and fails if an event has a wrong outcome."""

    def report_deliveries(report: DeliveryReport) -> None:
        record_property(DELIVERIES, report.figures)
        assert report.wrong == {}, report.figures

    return report_deliveries
