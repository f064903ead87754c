"""A store that reports each call by its name, such as `events.claim`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
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
        measured: Callable[[object, str], Any] = partial(_MeasuredPart, observer_of)
        self.events: EventStore = measured(store.events, "events.")
        self.inboxes: InboxStore = measured(store.inboxes, "inboxes.")
        self.counters: CounterStore = measured(store.counters, "counters.")
        self.keys: KeyStore = measured(store.keys, "keys.")
        self.tenants: TenantStore = measured(store.tenants, "tenants.")
        self.now_ms = store.now_ms
        self.init = store.init
        self.check: Callable[[], None] = measured(store, "").check
        self.close = store.close
        self.set_batch_listener = store.set_batch_listener
        self.watch_arrivals = store.watch_arrivals


@dataclass
class _MeasuredPart:
    """Has the methods of a part of the store, and measures their calls."""

    _observer_of: ObserverOf
    _part: object
    _prefix: str

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """Returns a measured method. Python calls this only once for each: `setattr` stores it as an attribute."""
        observe = self._observer_of(self._prefix + method)

        def call(*args: Any, **kwargs: Any) -> Any:
            started = perf_counter()
            try:
                result = getattr(self._part, method)(*args, **kwargs)
            except Exception as error:
                # Errors such as NotFound are results, not failures of the store.
                failed = isinstance(error, StoreUnavailable) or not isinstance(error, InboxError)
                observe(perf_counter() - started, None, failed)
                raise
            observe(perf_counter() - started, result, False)
            return result

        setattr(self, method, call)
        return call
