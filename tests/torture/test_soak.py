"""A service at half of its peak load for a quarter of an hour: no resource grows, and responses do not get slower."""

import time
from collections.abc import Callable

from tests.service import Service
from tests.torture.delivery_report import DeliveryReport, Outcome
from tests.torture.process_metrics import ProcessMetrics, find_growth, measure_processes
from tests.torture.workload import Workload

PRODUCERS, CONSUMERS = 8, 4


def test_nothing_grows_at_half_the_peak_load(
    service: Service,
    torture: bool,
    report_deliveries: Callable[[DeliveryReport], None],
    new_workload: Callable[..., Workload],
    record_property: Callable[[str, object], None],
) -> None:
    peak_seconds, soak_seconds, interval_seconds = (30, 900, 5) if torture else (1, 4, 0.2)
    workload = new_workload(service)
    service.start()
    workload.add_producers(PRODUCERS)
    workload.add_consumers(CONSUMERS)
    for consumer in workload.consumers:
        consumer.limit, consumer.pause_seconds = 500, 0.1
    measurements: list[ProcessMetrics] = []
    peak_rate = soak_rate = 0.0

    def soak() -> None:
        nonlocal peak_rate, soak_rate
        time.sleep(peak_seconds)
        peak_rate = workload.requests / peak_seconds
        for producer in workload.producers:
            producer.pace_seconds = PRODUCERS / (peak_rate / 2)
        workload.take_response_seconds()
        response_seconds: list[float] = []
        before = workload.requests
        began = time.monotonic()
        while time.monotonic() < began + soak_seconds:
            time.sleep(interval_seconds)
            response_seconds += workload.take_response_seconds()
            # On a busy disk, an interval may have too few responses. The next measurement includes them.
            if len(response_seconds) > 1:
                measurements.append(measure_processes(service, response_seconds))
                response_seconds = []
        soak_rate = (workload.requests - before) / soak_seconds

    report = workload.work(during=soak)

    assert measurements
    report_deliveries(report)
    record_property("requests per second", f"{peak_rate:.0f} at the peak, {soak_rate:.0f} in the soak")
    assert (workload.lost_responses, report.unavailable, report.outcomes[Outcome.UNREAD]) == (0, 0, [])
    if torture:
        assert soak_rate > 0.4 * peak_rate
        assert find_growth(measurements) == {}
