"""The store's time."""

import time

from tests.engines.harnesses import Harness


def test_processes_agree_with_the_wall_clock(harness: Harness) -> None:
    before_ms = time.time_ns() // 1_000_000
    times = [store.now_ms() for store in (harness.store, harness.another(), harness.another())]
    after_ms = time.time_ns() // 1_000_000
    assert before_ms - 100 <= min(times)
    assert max(times) <= after_ms + 100
