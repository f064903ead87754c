"""Concurrent requests share a batch: `WriteBatcher` in `inbox.store.dynamodb.event_writer`."""

import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import pytest

from inbox.errors import StoreUnavailable
from inbox.store.dynamodb.connection import MAX_BATCH_WRITE
from inbox.store.dynamodb.event_writer import PARALLEL_WRITE_THRESHOLD, WriteBatcher
from inbox.store.dynamodb.layout import Item


def test_single_item_is_written_at_once_and_alone() -> None:
    written: list[Sequence[Item]] = []

    def write(items: Sequence[Item]) -> list[None]:
        written.append(items)
        return [None] * len(items)

    batcher = WriteBatcher(write)
    for number in range(3):
        batcher.put([{"n": number}])
    assert written == [[{"n": 0}], [{"n": 1}], [{"n": 2}]]


@pytest.mark.parametrize("waiting_requests", [10, MAX_BATCH_WRITE])
def test_waiting_requests_are_written_together(waiting_requests: int) -> None:
    written: list[int] = []
    first_is_running, resume = threading.Event(), threading.Event()

    def write(items: Sequence[Item]) -> list[None]:
        written.append(len(items))
        if len(written) == 1:
            first_is_running.set()
            resume.wait(10)
        return [None] * len(items)

    batcher = WriteBatcher(write)
    with ThreadPoolExecutor(1 + waiting_requests) as pool:
        first = pool.submit(batcher.put, [{}])
        assert first_is_running.wait(10)
        others = [pool.submit(batcher.put, [{}]) for _ in range(waiting_requests)]
        while len(batcher._queue) < waiting_requests and written == [1]:
            time.sleep(0.001)
        before = list(written)
        resume.set()
        for each in (first, *others):
            each.result(10)
    assert before == [1]
    assert written == [1, waiting_requests]


def test_full_batch_is_written_in_parallel_if_many_requests_wait() -> None:
    written: list[int] = []
    first_is_running, resume = threading.Event(), threading.Event()

    def write(items: Sequence[Item]) -> list[None]:
        written.append(len(items))
        if len(written) == 1:
            first_is_running.set()
            assert resume.wait(10)
        return [None] * len(items)

    batcher = WriteBatcher(write)
    with ThreadPoolExecutor(1 + PARALLEL_WRITE_THRESHOLD) as pool:
        first = pool.submit(batcher.put, [{}])
        assert first_is_running.wait(10)
        others = [pool.submit(batcher.put, [{}]) for _ in range(PARALLEL_WRITE_THRESHOLD)]
        for _ in zip(range(MAX_BATCH_WRITE), as_completed(others, 10), strict=False):
            pass
        assert written == [1, MAX_BATCH_WRITE]
        resume.set()
        for each in (first, *others):
            each.result(10)
    assert written == [1, MAX_BATCH_WRITE, MAX_BATCH_WRITE]


@pytest.mark.parametrize("seed", range(5))
def test_every_item_is_written_once_and_every_request_ends(seed: int) -> None:
    rng = random.Random(seed)
    mutex = threading.Lock()
    written: list[int] = []

    def write(items: Sequence[Item]) -> list[Exception | None]:
        assert 1 <= len(items) <= MAX_BATCH_WRITE
        time.sleep(rng.choice((0, 0, 0.0005, 0.002)))
        with mutex:
            written.extend(item["n"] for item in items)
        return [StoreUnavailable() if item["n"] % 10 == 0 else None for item in items]

    batcher = WriteBatcher(write)

    def put(number: int) -> bool:
        try:
            batcher.put([{"n": number}])
        except StoreUnavailable:
            return False
        return True

    with ThreadPoolExecutor(100) as pool:
        futures = [pool.submit(put, number) for number in range(3000)]
        outcomes = [future.result(30) for future in futures]

    assert outcomes == [number % 10 != 0 for number in range(3000)]
    assert sorted(written) == list(range(3000))
    assert batcher._writes == 0


def test_write_that_raises_fails_its_requests_only() -> None:
    broken = True

    def write(items: Sequence[Item]) -> list[None]:
        if broken:
            raise ZeroDivisionError
        return [None] * len(items)

    batcher = WriteBatcher(write)
    with pytest.raises(ZeroDivisionError):
        batcher.put([{}])
    broken = False
    batcher.put([{}])
