"""The readiness check, which checks the store up to once a second."""

import threading

import pytest

from inbox.errors import StoreUnavailable
from inbox.services.readiness import ReadinessCheck
from tests.service import until
from tests.unit.test_token_buckets import FakeClock


class FakeStore:
    def __init__(self) -> None:
        self.checks = 0
        self.is_available = True
        self.may_respond = threading.Event()
        self.may_respond.set()

    def check(self) -> None:
        self.checks += 1
        assert self.may_respond.wait(10)
        if not self.is_available:
            raise StoreUnavailable("The disk is full.")


def is_ready(readiness: ReadinessCheck) -> bool:
    try:
        readiness.check()
    except StoreUnavailable:
        return False
    return True


@pytest.mark.parametrize("is_available", [True, False])
def test_result_is_reused_for_one_second(is_available: bool) -> None:
    store, clock = FakeStore(), FakeClock()
    store.is_available = is_available
    readiness = ReadinessCheck(store.check, clock)
    assert {is_ready(readiness) for _ in range(5)} == {is_available}
    store.is_available = not is_available
    clock.now += 0.99
    assert is_ready(readiness) is is_available
    assert store.checks == 1
    clock.now += 0.01
    assert is_ready(readiness) is not is_available
    assert store.checks == 2


def test_concurrent_callers_share_one_check() -> None:
    store = FakeStore()
    store.may_respond.clear()
    readiness = ReadinessCheck(store.check, FakeClock())
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(is_ready(readiness))) for _ in range(5)]
    for thread in threads:
        thread.start()
    until(lambda: store.checks == 1)
    store.may_respond.set()
    for thread in threads:
        thread.join()
    assert (results, store.checks) == ([True] * 5, 1)


def test_unexpected_error_is_not_cached() -> None:
    calls = iter([ValueError(), None])

    def check() -> None:
        if (error := next(calls)) is not None:
            raise error

    readiness = ReadinessCheck(check, FakeClock())
    with pytest.raises(ValueError):  # noqa: PT011
        readiness.check()
    assert is_ready(readiness)
