"""The store wrapper that measures calls."""

from typing import Any, cast

import pytest

from inbox.errors import InboxError, StoreUnavailable, TenantExists
from inbox.metrics.measured_store import MeasuredStore, Observer
from inbox.store.interface import CounterStore, EventStore, InboxStore, KeyStore, Store, TenantStore
from inbox.store.sqlite import SQLiteStore

PARTS = {
    "events": EventStore,
    "inboxes": InboxStore,
    "counters": CounterStore,
    "keys": KeyStore,
    "tenants": TenantStore,
}


class Recorder:
    def __init__(self) -> None:
        self.operations: list[str] = []
        self.calls: list[tuple[str, Any, bool]] = []

    def __call__(self, operation: str) -> Observer:
        self.operations.append(operation)

        def observe(seconds: float, result: Any, failed: bool) -> None:
            assert 0 <= seconds < 60
            self.calls.append((operation, result, failed))

        return observe


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def methods_of(protocol: type) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_")]


def test_measured_store_has_every_method_of_the_interface(store: SQLiteStore, recorder: Recorder) -> None:
    measured = MeasuredStore(store, recorder)
    assert {*PARTS, *methods_of(Store)} <= set(vars(measured))


@pytest.mark.parametrize("part", PARTS)
def test_every_method_of_the_store_is_measured_under_its_name(
    part: str, store: SQLiteStore, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = methods_of(PARTS[part])
    assert methods
    measured = MeasuredStore(store, recorder)
    for method in methods:
        monkeypatch.setattr(getattr(store, part), method, lambda *arguments, method=method: (method, *arguments))
        assert getattr(getattr(measured, part), method)("acme") == (method, "acme")
    assert recorder.calls == [(f"{part}.{method}", (method, "acme"), False) for method in methods]


def test_results_are_returned_and_observed(store: SQLiteStore, recorder: Recorder) -> None:
    measured = MeasuredStore(store, recorder)
    assert measured.tenants.get("nobody") is None
    assert measured.keys.all("nobody") == []
    assert measured.tenants.get(tenant_id="nobody") is None
    measured.check()
    measured.now_ms()
    assert recorder.calls == [
        ("tenants.get", None, False),
        ("keys.all", [], False),
        ("tenants.get", None, False),
        ("check", None, False),
    ]
    assert sorted(recorder.operations) == ["check", "keys.all", "tenants.get"]


@pytest.mark.parametrize(
    ("error", "failed"), [(StoreUnavailable("no"), True), (RuntimeError("bug"), True), (TenantExists("yes"), False)]
)
def test_exceptions_are_raised_and_observed(recorder: Recorder, error: Exception, failed: bool) -> None:
    class Failing:
        events = inboxes = counters = keys = tenants = now_ms = init = close = set_batch_listener = watch_arrivals = (
            None
        )

        def check(self) -> None:
            raise error

    with pytest.raises((InboxError, RuntimeError)) as raised:
        MeasuredStore(cast(Store, Failing()), recorder).check()
    assert raised.value is error
    assert recorder.calls == [("check", None, failed)]
