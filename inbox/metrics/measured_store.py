"""A store whose calls are watched, each by its name: `events.claim`."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, cast

from inbox.errors import InboxError, StoreUnavailable
from inbox.store.interface import CounterStore, EventStore, InboxStore, KeyStore, Store, TenantStore

Ended = Callable[[float, Any, bool], object]
"""Hears of a call's end: the seconds that it took, what it returned, and whether the store failed."""

Watch = Callable[[str], Ended]
"""Who hears of an operation's calls. Asked at its first: a process never calls most of them."""


class MeasuredStore:
    """The time is not measured: it is asked for all the time, and comes from memory."""

    def __init__(self, store: Store, watch: Watch) -> None:
        self.events = cast(EventStore, _Part(store.events, "events", EventStore, watch))
        self.inboxes = cast(InboxStore, _Part(store.inboxes, "inboxes", InboxStore, watch))
        self.counters = cast(CounterStore, _Part(store.counters, "counters", CounterStore, watch))
        self.keys = cast(KeyStore, _Part(store.keys, "keys", KeyStore, watch))
        self.tenants = cast(TenantStore, _Part(store.tenants, "tenants", TenantStore, watch))
        self.now_ms = store.now_ms
        self.init = store.init
        self.check: Callable[[], None] = _measured(store, "check", "check", watch)
        self.close = store.close
        self.set_batch_listener = store.set_batch_listener
        self.watch_arrivals = store.watch_arrivals


class _Part:
    """Has the operations that the port names, and nothing else."""

    def __init__(self, part: object, name: str, port: type, watch: Watch) -> None:
        for operation in operations_of(port):
            self.__dict__[operation] = _measured(part, operation, f"{name}.{operation}", watch)


def operations_of(port: type) -> list[str]:
    return [name for name in vars(port) if not name.startswith("_")]


def _measured(part: object, operation: str, name: str, watch: Watch) -> Callable[..., Any]:
    ended: Ended | None = None

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal ended
        if ended is None:
            ended = watch(name)
        began = perf_counter()
        try:
            result = getattr(part, operation)(*args, **kwargs)
        except Exception as error:
            # A refusal is an answer, and no failure of the store.
            failed = isinstance(error, StoreUnavailable) or not isinstance(error, InboxError)
            ended(perf_counter() - began, None, failed)
            raise
        ended(perf_counter() - began, result, False)
        return result

    return call
