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
    peak_seconds, soak_seconds, every_seconds = (30, 900, 5) if torture else (1, 4, 0.2)
    workload = new_workload(service)
    service.start()
    workload.add_producers(PRODUCERS)
    workload.add_consumers(CONSUMERS)
    for consumer in workload.consumers:
        consumer.limit, consumer.pause_seconds = 500, 0.1
    measurements: list[ProcessMetrics] = []
    peak = half = 0.0

    def soak() -> None:
        nonlocal peak, half
        time.sleep(peak_seconds)
        peak = workload.requests / peak_seconds
        for producer in workload.producers:
            producer.pace_seconds = PRODUCERS / (peak / 2)
        workload.take_seconds()
        taken: list[float] = []
        before = workload.requests
        began = time.monotonic()
        while time.monotonic() < began + soak_seconds:
            time.sleep(every_seconds)
            taken += workload.take_seconds()
            # On a busy disk, an interval may have no response. The next interval then includes later ones.
            if len(taken) > 1:
                measurements.append(measure_processes(service, taken))
                taken = []
        half = (workload.requests - before) / soak_seconds

    report = workload.work(during=soak)

    assert measurements
    report_deliveries(report)
    record_property("requests per second", f"{peak:.0f} at the peak, {half:.0f} in the soak")
    assert (workload.lost_responses, report.unavailable, report.outcomes[Outcome.UNREAD]) == (0, 0, [])
    if torture:
        assert half > 0.4 * peak
        assert find_growth(measurements) == {}
