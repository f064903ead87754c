"""Token buckets shared by processes."""

import subprocess
import sys
from dataclasses import dataclass

from inbox.auth.token_buckets import _SLOTS, TokenBuckets


@dataclass
class FakeClock:
    """Replaces `time.monotonic`."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def test_bucket_holds_its_size_in_tokens() -> None:
    buckets = TokenBuckets(FakeClock())
    taken = [buckets.take("a", 5, 5) for _ in range(7)]

    assert [state.remaining for state in taken] == [4, 3, 2, 1, 0, 0, 0]
    assert [state.wait_seconds > 0 for state in taken] == [False] * 5 + [True] * 2


def test_bucket_refills_token_by_token() -> None:
    clock = FakeClock()
    buckets = TokenBuckets(clock)
    for _ in range(5):
        buckets.take("a", 5, 5)
    assert abs(buckets.take("a", 5, 5).wait_seconds - 0.2) < 1e-6

    clock.now += 0.2
    assert buckets.take("a", 5, 5).wait_seconds == 0
    assert buckets.take("a", 5, 5).wait_seconds > 0
    clock.now += 100
    assert [buckets.take("a", 5, 5).wait_seconds > 0 for _ in range(6)] == [False] * 5 + [True]


def test_long_term_rate_is_per_second() -> None:
    clock = FakeClock()
    buckets = TokenBuckets(clock)
    taken = 0
    for _ in range(10_000):
        clock.now += 0.01
        taken += buckets.take("a", 7, 7).wait_seconds == 0
    assert 700 <= taken <= 708


def test_peek_takes_no_token() -> None:
    buckets = TokenBuckets(FakeClock())
    assert {buckets.peek("a", 1, 2).remaining for _ in range(5)} == {2}
    buckets.take("a", 1, 2)
    buckets.take("a", 1, 2)
    assert buckets.peek("a", 1, 2).wait_seconds == 1


def test_state_says_when_the_bucket_is_full() -> None:
    clock = FakeClock()
    buckets = TokenBuckets(clock)
    for _ in range(60):
        buckets.take("a", 1, 60)
    assert buckets.peek("a", 1, 60).full_in_seconds == 60
    clock.now += 59.5
    assert buckets.peek("a", 1, 60).full_in_seconds == 1


def test_every_name_has_its_own_bucket() -> None:
    buckets = TokenBuckets(FakeClock())
    assert [buckets.take(f"tenant {number}", 1, 1).wait_seconds for number in range(1000)] == [0] * 1000
    assert all(buckets.take(f"tenant {number}", 1, 1).wait_seconds for number in range(1000))


def test_changed_size_applies_at_once() -> None:
    buckets = TokenBuckets(FakeClock())
    for _ in range(60):
        buckets.take("a", 1, 60)
    assert 0 < buckets.take("a", 10, 10).wait_seconds < 0.11


def test_more_names_than_slots_do_not_grow_the_table() -> None:
    buckets = TokenBuckets(FakeClock())
    size = buckets._memory.nbytes
    for number in range(_SLOTS * 2):
        buckets.take(f"address {number}", 1, 60)
    assert buckets._memory.nbytes == size
    for _ in range(60):
        buckets.take("the last", 1, 60)
    assert buckets.take("the last", 1, 60).wait_seconds > 0


FORKING_PROGRAM = """
import os
from inbox.auth.token_buckets import TokenBuckets
buckets = TokenBuckets()
for _ in range(3):
    if os.fork() == 0:
        os._exit(buckets.take("a", 0.001, 3).wait_seconds > 0)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
assert buckets.take("a", 0.001, 3).wait_seconds > 0
"""


def test_forked_processes_share_buckets() -> None:
    subprocess.run([sys.executable, "-c", FORKING_PROGRAM], check=True, timeout=30)


CONCURRENT_PROGRAM = """
import os, time
from inbox.auth.token_buckets import TokenBuckets
buckets = TokenBuckets()
reader, writer = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        taken = sum(buckets.take("a", 0.001, 1000).wait_seconds == 0 for _ in range(20_000))
        os.write(writer, taken.to_bytes(4, "big"))
        os._exit(0)
taken = sum(int.from_bytes(os.read(reader, 4), "big") for _ in range(4))
# Separate buckets would give 4000.
assert 1000 <= taken <= 3000, taken
"""


def test_concurrent_processes_lose_few_counts() -> None:
    subprocess.run([sys.executable, "-c", CONCURRENT_PROGRAM], check=True, timeout=60)
