"""A service at half of what it can do, for a quarter of an hour: nothing grows, and no answer gets slower."""

import time
from collections.abc import Callable
from pathlib import Path

from tests.service import Service
from tests.torture.delivery_report import Account, Class
from tests.torture.plots import drawn
from tests.torture.process_metrics import Vitals, grown, vitals
from tests.torture.workload import Crowd

PLOTS = Path(__file__).parents[2] / "build" / "torture"
PRODUCERS, CONSUMERS = 8, 4


def test_nothing_grows_at_half_the_peak(
    service: Service,
    torture: bool,
    hand_in: Callable[[Account], None],
    crowd_of: Callable[..., Crowd],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    peak_seconds, soak_seconds, every_seconds = (30, 900, 5) if torture else (1, 4, 0.2)
    crowd = crowd_of(service)
    service.start()
    crowd.add_producers(PRODUCERS)
    crowd.add_consumers(CONSUMERS)
    for consumer in crowd.consumers:
        consumer.limit, consumer.pause_seconds = 500, 0.1
    seconds: list[float] = []
    seen: list[Vitals] = []
    peak = half = 0.0

    def soak() -> None:
        nonlocal peak, half
        time.sleep(peak_seconds)
        peak = crowd.requests / peak_seconds
        for producer in crowd.producers:
            producer.pace_seconds = PRODUCERS / (peak / 2)
        crowd.timings()
        taken: list[float] = []
        before = crowd.requests
        began = time.monotonic()
        while time.monotonic() < began + soak_seconds:
            time.sleep(every_seconds)
            taken += crowd.timings()
            # A disk that others use may hold every answer back for a moment: they all are in the next look then.
            if len(taken) > 1:
                seconds.append(time.monotonic() - began)
                seen.append(vitals(service, taken))
                taken = []
        half = (crowd.requests - before) / soak_seconds

    account = crowd.work(during=soak)

    assert seen
    series = {name.replace("_", " "): [getattr(each, name) for each in seen] for name in Vitals._fields}
    plot = (PLOTS if torture else tmp_path) / "soak.svg"
    plot.parent.mkdir(parents=True, exist_ok=True)
    plot.write_text(drawn("Half the peak: what the service holds, and how it answers", seconds, series))
    assert plot.read_text().count("<polyline") == len(series)
    hand_in(account)
    record_property("requests a second", f"{peak:.0f} at the peak, {half:.0f} in the soak")
    assert (crowd.unanswered, account.unavailable, account.classes[Class.UNREAD]) == (0, 0, [])
    if torture:
        assert half > 0.4 * peak
        assert grown(seen) == {}
