"""A store that reports each call by its name, such as `events.claim`."""

from collections.abc import Callable
from functools import cache
from time import perf_counter
from types import SimpleNamespace
from typing import Any

from inbox.errors import InboxError, StoreUnavailable
from inbox.store.interface import CounterStore, EventStore, InboxStore, KeyStore, Store, TenantStore

Observer = Callable[[float, Any, bool], object]
"""Called after a store call with its duration in seconds, its result, and True if the store failed."""

ObserverOf = Callable[[str], Observer]
"""Returns the observer of an operation. Called at its first use: a process never uses most of them."""


class MeasuredStore:
    """Does not measure `now_ms`, which is called all the time and reads from memory."""

    def __init__(self, store: Store, observer_of: ObserverOf) -> None:
        observer_of = cache(observer_of)
        self.events: EventStore = _measured_part(store.events, "events", EventStore, observer_of)
        self.inboxes: InboxStore = _measured_part(store.inboxes, "inboxes", InboxStore, observer_of)
        self.counters: CounterStore = _measured_part(store.counters, "counters", CounterStore, observer_of)
        self.keys: KeyStore = _measured_part(store.keys, "keys", KeyStore, observer_of)
        self.tenants: TenantStore = _measured_part(store.tenants, "tenants", TenantStore, observer_of)
        self.now_ms = store.now_ms
        self.init = store.init
        self.check: Callable[[], None] = _measured(store, "check", "check", observer_of)
        self.close = store.close
        self.set_batch_listener = store.set_batch_listener
        self.watch_arrivals = store.watch_arrivals


def _measured_part(part: object, name: str, protocol: type, observer_of: ObserverOf) -> Any:
    """Returns an object that has the methods of the protocol and no others."""
    operations = operations_of(protocol)
    return SimpleNamespace(**{each: _measured(part, each, f"{name}.{each}", observer_of) for each in operations})


def operations_of(protocol: type) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_")]


def _measured(part: object, operation: str, name: str, observer_of: ObserverOf) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        observe = observer_of(name)
        started = perf_counter()
        try:
            result = getattr(part, operation)(*args, **kwargs)
        except Exception as error:
            # Errors such as NotFound are results, not failures of the store.
            failed = isinstance(error, StoreUnavailable) or not isinstance(error, InboxError)
            observe(perf_counter() - started, None, failed)
            raise
        observe(perf_counter() - started, result, False)
        return result

    return call
