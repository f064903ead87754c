"""The Prometheus metrics of the service. docs/reference/metrics.md describes them; a test compares the two.

No label has a value that a client can choose, so the number of series is limited: no tenants, keys or paths.
"""

import os
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import structlog
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    disable_created_metrics,
    generate_latest,
    values,
)
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.values import MultiProcessValue, MutexValue

from inbox import __version__
from inbox.domain.events import Page, PutResult
from inbox.metrics.folder import has_room
from inbox.metrics.measured_store import Observer
from inbox.store.interface import EventStore

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_LONG_POLL_SECONDS = (0.01, 0.1, 0.5, 1, 2, 5, 10, 15, 20, 25)
_BATCH_SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)

# prometheus_client does not know creation times in multi-process mode. Without them both modes show the same.
disable_created_metrics()

_log = structlog.get_logger()

CountResult = Callable[[Any], None]
_ResponseSeries = tuple[Callable[[], None], Callable[[float], None]]


def _event_counters(counter: Callable[..., Counter]) -> dict[str, CountResult]:
    """Returns the functions that count the results of operations, by operation. Most results are not counted."""
    received = counter("inbox_events_received", "Events stored")
    repeated = counter("inbox_events_repeated", "Events that were stored already under their idempotency key")
    handed_out = counter("inbox_events_handed_out", "Events returned by polls", ["status"])
    delivered, leased = handed_out.labels("delivered"), handed_out.labels("leased")
    settled = counter("inbox_events_settled", "Leased events that were settled", ["action"])
    lost = counter("inbox_receipts_lost", "Expired or unknown receipts")
    replayed = counter("inbox_events_replayed", "Events that a replay made undelivered or found undelivered")

    def count_put(results: list[PutResult]) -> None:
        repeats = sum(each.repeated for each in results)
        if repeats:
            repeated.inc(repeats)
        if repeats < len(results):
            received.inc(len(results) - repeats)

    def count_claim(page: Page) -> None:
        leases = sum(event.lease is not None for event in page.events)
        if leases:
            leased.inc(leases)
        if leases < len(page.events):
            delivered.inc(len(page.events) - leases)

    def count_settled(action: Counter, held: list[bool]) -> None:
        action.inc(sum(held))
        lost.inc(len(held) - sum(held))

    count_by_method: dict[Callable[..., object], CountResult] = {
        EventStore.put: count_put,
        EventStore.claim: count_claim,
        EventStore.acknowledge: partial(count_settled, settled.labels("acknowledged")),
        EventStore.release: partial(count_settled, settled.labels("released")),
        EventStore.extend: partial(count_settled, settled.labels("extended")),
        EventStore.replay: lambda _event: replayed.inc(),
        EventStore.replay_all: lambda result: replayed.inc(result.count),
    }
    return {f"events.{method.__name__}": count for method, count in count_by_method.items()}


class Metrics:
    """Counts in files in `folder` and shows the sums of all processes; without a folder, counts in memory."""

    def __init__(self, engine: str, folder: Path | None = None) -> None:
        registry = CollectorRegistry()
        self._engine = engine
        self._shown = registry if folder is None else CollectorRegistry()
        # prometheus_client chooses the class of new series at import, when there is no folder yet.
        values.ValueClass = MutexValue
        if folder is not None:
            # systemd empties /dev/shm when the user of the service logs out; a new worker must still start.
            folder.mkdir(mode=0o700, exist_ok=True)
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
            self._shown.register(_Sums(folder))
            if has_room(folder):
                values.ValueClass = MultiProcessValue()
            else:
                _log.warning("metrics of this process are not counted: no space left", folder=str(folder))
        # Not stored in files: every process has the same.
        build = Info("inbox_build", "The release and its store engine", registry=self._shown)
        build.info({"version": __version__, "engine": engine})

        counter, histogram = partial(Counter, registry=registry), partial(Histogram, registry=registry)
        self._requests = counter("inbox_requests", "Responses", ["route", "method", "status"])
        self._request_seconds = histogram(
            "inbox_request_duration_seconds", "Time to the response", ["route", "method"], buckets=_SECONDS
        )
        self._long_poll_seconds = histogram(
            "inbox_long_poll_duration_seconds",
            "Time to the response of polls with a wait",
            ["route"],
            buckets=_LONG_POLL_SECONDS,
        )
        waiting = Gauge("inbox_waiting_polls", "Waiting polls", multiprocess_mode="livesum", registry=registry)
        self._key_lookups = counter("inbox_key_lookups", "Keys looked up, by source", ["source"])
        self._store_seconds = histogram(
            "inbox_store_call_duration_seconds", "Calls of the store", ["engine", "operation"], buckets=_SECONDS
        )
        self._store_errors = counter("inbox_store_errors", "Calls of the store that failed", ["engine", "operation"])
        batches = histogram("inbox_store_batch_size", "Requests that share a write", ["engine"], buckets=_BATCH_SIZES)

        self.observe_batch = batches.labels(engine).observe
        self.add_waiting_polls = waiting.inc
        self._count_result_of = _event_counters(counter)
        # Cached: looking up the labels costs more than counting.
        self._response_series = cache(self._find_response_series)
        self._count_by_source = cache(lambda source: self._key_lookups.labels(source).inc)

    def observe_response(self, route: str | None, method: str, status: int, seconds: float, *, may_wait: bool) -> None:
        """`route` is a URL rule, never a path; None if no rule matched."""
        count, observe = self._response_series(route, method if method in _METHODS else "other", status, may_wait)
        count()
        observe(seconds)

    def _find_response_series(self, route: str | None, method: str, status: int, may_wait: bool) -> _ResponseSeries:
        name = route or "unmatched"
        of_route = self._long_poll_seconds.labels(name) if may_wait else self._request_seconds.labels(name, method)
        return self._requests.labels(name, method, status).inc, of_route.observe

    def count_key_lookup(self, source: str) -> None:
        self._count_by_source(source)()

    def store_observer(self, operation: str) -> Observer:
        observe = self._store_seconds.labels(self._engine, operation).observe
        # Created with the first call: Prometheus sees no increase in a counter that begins with 1.
        count_error = self._store_errors.labels(self._engine, operation).inc
        count_events = self._count_result_of.get(operation)

        def observe_call(seconds: float, result: Any, failed: bool) -> None:
            observe(seconds)
            if failed:
                count_error()
            elif count_events is not None and result is not None:
                count_events(result)

        return observe_call

    def exposition(self) -> bytes:
        """Returns all metrics in the Prometheus text format."""
        return generate_latest(self._shown)


class _Sums(Collector):
    """The sums of all processes that count in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterable[Metric]:
        # A process that starts creates its files empty, and prometheus_client cannot read an empty file.
        files = [str(file) for file in self._folder.glob("*.db") if _is_written(file)]
        sums: Iterable[Metric] = MultiProcessCollector.merge(files)
        return sums


def _is_written(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:
        return False
