"""The store's own time."""

import time

from tests.engines.harnesses import Harness

# An engine may tell the time in whole seconds.
NEAR_MS = 1_500


def test_all_who_share_the_store_have_the_same_time(harness: Harness) -> None:
    before_ms = time.time_ns() // 1_000_000
    times = [store.now_ms() for store in (harness.store, harness.another(), harness.another())]
    after_ms = time.time_ns() // 1_000_000
    assert before_ms - NEAR_MS <= min(times)
    assert max(times) <= after_ms + NEAR_MS


def test_the_time_goes_on_and_never_falls(harness: Harness) -> None:
    told = [harness.store.now_ms()]
    begun = time.monotonic()
    while told[-1] < told[0] + 50:
        told.append(harness.store.now_ms())
        assert time.monotonic() - begun < 10, "It stands still."
    assert told == sorted(told)


def test_a_store_that_was_opened_again_goes_on_where_it_was(harness: Harness) -> None:
    before_ms = harness.store.now_ms()
    harness.reopen()
    assert 0 <= harness.store.now_ms() - before_ms < 60_000
