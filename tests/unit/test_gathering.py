"""Events that arrive together are written together: `inbox.store.dynamodb.gathering`."""

import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from inbox.errors import StoreUnavailable
from inbox.store.dynamodb.gathering import MOST_TOGETHER, Gathering
from inbox.store.dynamodb.layout import Item


def test_a_lone_item_is_written_at_once_and_alone() -> None:
    written: list[Sequence[Item]] = []

    def write(items: Sequence[Item]) -> list[None]:
        written.append(items)
        return [None] * len(items)

    gathering = Gathering(write)
    for number in range(3):
        gathering.put([{"n": number}])
    assert written == [[{"n": 0}], [{"n": 1}], [{"n": 2}]]


def test_who_waits_goes_together() -> None:
    written: list[int] = []
    first_is_under_way, go_on = threading.Event(), threading.Event()

    def write(items: Sequence[Item]) -> list[None]:
        written.append(len(items))
        if len(written) == 1:
            first_is_under_way.set()
            go_on.wait(10)
        return [None] * len(items)

    gathering = Gathering(write)
    with ThreadPoolExecutor(20) as pool:
        first = pool.submit(gathering.put, [{}])
        assert first_is_under_way.wait(10)
        others = [pool.submit(gathering.put, [{}]) for _ in range(10)]
        while len(gathering._queue) < 10:
            time.sleep(0.001)
        go_on.set()
        for each in (first, *others):
            each.result(10)
    assert written == [1, 10]


def test_a_full_batch_does_not_wait_for_the_one_under_way() -> None:
    full_went = threading.Event()

    def write(items: Sequence[Item]) -> list[None]:
        if len(items) == MOST_TOGETHER:
            full_went.set()
        assert full_went.wait(10)
        return [None] * len(items)

    gathering = Gathering(write)
    with ThreadPoolExecutor(1 + MOST_TOGETHER) as pool:
        for each in [pool.submit(gathering.put, [{}]) for _ in range(1 + MOST_TOGETHER)]:
            each.result(10)


@pytest.mark.parametrize("seed", range(5))
def test_every_item_is_written_once_and_nobody_waits_for_ever(seed: int) -> None:
    rng = random.Random(seed)
    mutex = threading.Lock()
    written: list[int] = []

    def write(items: Sequence[Item]) -> list[Exception | None]:
        assert 1 <= len(items) <= MOST_TOGETHER
        time.sleep(rng.choice((0, 0, 0.0005, 0.002)))
        with mutex:
            written.extend(item["n"] for item in items)
        return [StoreUnavailable() if item["n"] % 10 == 0 else None for item in items]

    gathering = Gathering(write)

    def put(number: int) -> bool:
        try:
            gathering.put([{"n": number}])
        except StoreUnavailable:
            return False
        return True

    with ThreadPoolExecutor(100) as pool:
        futures = [pool.submit(put, number) for number in range(3000)]
        outcomes = [future.result(30) for future in futures]

    assert outcomes == [number % 10 != 0 for number in range(3000)]
    assert sorted(written) == list(range(3000))
    assert gathering._under_way == 0


def test_a_write_that_breaks_down_is_an_error_for_each_and_the_next_one_works() -> None:
    broken = True

    def write(items: Sequence[Item]) -> list[None]:
        if broken:
            raise ZeroDivisionError
        return [None] * len(items)

    gathering = Gathering(write)
    with pytest.raises(ZeroDivisionError):
        gathering.put([{}])
    broken = False
    gathering.put([{}])
