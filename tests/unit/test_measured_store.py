"""A store whose calls are watched."""

from typing import Any, cast

import pytest

from inbox.errors import InboxError, StoreUnavailable, TenantExists
from inbox.metrics.measured_store import MeasuredStore, Observer, operations_of
from inbox.store.interface import CounterStore, EventStore, InboxStore, KeyStore, Store, TenantStore
from inbox.store.sqlite import SQLiteStore

PARTS = {
    "events": EventStore,
    "inboxes": InboxStore,
    "counters": CounterStore,
    "keys": KeyStore,
    "tenants": TenantStore,
}


class Watcher:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.heard: list[tuple[str, Any, bool]] = []

    def __call__(self, operation: str) -> Observer:
        self.asked.append(operation)

        def ended(seconds: float, result: Any, failed: bool) -> None:
            assert 0 <= seconds < 60
            self.heard.append((operation, result, failed))

        return ended


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


def test_it_has_every_operation_of_the_port(store: SQLiteStore, watcher: Watcher) -> None:
    measured = MeasuredStore(store, watcher)
    for name, port in PARTS.items():
        part = getattr(measured, name)
        assert operations_of(port)
        assert all(callable(getattr(part, operation)) for operation in operations_of(port))
    assert {*PARTS, *operations_of(Store)} <= set(vars(measured))


def test_it_answers_what_the_store_answers_and_tells_of_it(store: SQLiteStore, watcher: Watcher) -> None:
    measured = MeasuredStore(store, watcher)
    assert measured.tenants.get("nobody") is None
    assert measured.keys.all("nobody") == []
    assert measured.tenants.get(tenant_id="nobody") is None
    measured.check()
    assert watcher.heard == [
        ("tenants.get", None, False),
        ("keys.all", [], False),
        ("tenants.get", None, False),
        ("check", None, False),
    ]
    assert watcher.asked == ["tenants.get", "keys.all", "check"]


def test_the_time_is_not_measured(store: SQLiteStore, watcher: Watcher) -> None:
    MeasuredStore(store, watcher).now_ms()
    assert watcher.heard == []


@pytest.mark.parametrize(
    ("error", "failed"), [(StoreUnavailable("no"), True), (RuntimeError("bug"), True), (TenantExists("yes"), False)]
)
def test_what_the_store_raises_is_raised_and_told(watcher: Watcher, error: Exception, failed: bool) -> None:
    class Failing:
        events = inboxes = counters = keys = tenants = now_ms = init = close = set_batch_listener = watch_arrivals = (
            None
        )

        def check(self) -> None:
            raise error

    with pytest.raises((InboxError, RuntimeError)) as raised:
        MeasuredStore(cast(Store, Failing()), watcher).check()
    assert raised.value is error
    assert watcher.heard == [("check", None, failed)]
