"""The store's time."""

import time

from tests.engines.harnesses import Harness


def test_processes_agree_with_the_wall_clock(harness: Harness) -> None:
    before_ms = time.time_ns() // 1_000_000
    times = [store.now_ms() for store in (harness.store, harness.another(), harness.another())]
    after_ms = time.time_ns() // 1_000_000
    assert before_ms - 100 <= min(times)
    assert max(times) <= after_ms + 100


def test_time_advances_and_never_goes_back(harness: Harness) -> None:
    times = [harness.store.now_ms()]
    started = time.monotonic()
    while times[-1] < times[0] + 50:
        times.append(harness.store.now_ms())
        assert time.monotonic() - started < 10, "The clock does not advance."
    assert times == sorted(times)
