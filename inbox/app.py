"""The composition root of the service: settings and store → services → Flask."""

import atexit
from dataclasses import dataclass, field
from pathlib import Path

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from inbox import api, console
from inbox.api.flask_app import InboxApp
from inbox.api.request_bodies import MAX_BATCH_SIZE_IN_EVENTS, ByteBudget
from inbox.api.services import Services
from inbox.auth.authenticator import Authenticator
from inbox.auth.key_cache import KeyCache
from inbox.auth.token_buckets import TokenBuckets
from inbox.background import BackgroundTask
from inbox.clock import Clock
from inbox.metrics.measured_store import MeasuredStore
from inbox.metrics.service_metrics import Metrics
from inbox.services.arrivals import Arrivals
from inbox.services.consume import ConsumeService
from inbox.services.history import HistoryService
from inbox.services.inboxes import InboxService
from inbox.services.keys import KeyService
from inbox.services.publish import PublishService
from inbox.services.readiness import ReadinessCheck
from inbox.services.retention import Retention
from inbox.services.stats import StatsService
from inbox.services.tenants import TenantService
from inbox.settings import Settings
from inbox.shared_integer import SharedInteger
from inbox.store.interface import Store

_PURGE_SECONDS = 60
_FLUSH_SECONDS = 1
# How many batches of the maximum size can be parsed at once. Parsing takes up to eight times their size in memory.
_PARALLEL_LARGEST_BATCHES = 4
_MIN_BODY_BUDGET_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Shared:
    """State that the processes of a service share. Create it before the fork."""

    buckets: TokenBuckets = field(default_factory=TokenBuckets)
    recently_valid_keys: TokenBuckets = field(default_factory=TokenBuckets)
    """The bucket of a key is empty for a day after the key was valid: see KeyCache."""
    metrics_folder: Path | None = None
    clock: Clock = field(default_factory=Clock)
    needed_disk_bytes: SharedInteger = field(default_factory=SharedInteger)


def create_app(settings: Settings, store: Store, shared: Shared) -> Flask:
    """Returns the WSGI app. Call it after the fork: a store's connections must not be shared between processes."""
    metrics = Metrics(settings.engine, shared.metrics_folder)
    store.set_batch_listener(metrics.observe_batch)
    store = MeasuredStore(store, metrics.store_observer)
    app = InboxApp("inbox", static_folder=None)
    if settings.trusted_proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=settings.trusted_proxies, x_proto=0)  # type: ignore[method-assign]
    cache = KeyCache(settings.key_cache_seconds, shared.recently_valid_keys)
    arrivals = Arrivals(store.watch_arrivals, store.now_ms, metrics.add_waiting_polls)
    api.install(
        app,
        Services(
            authenticator=Authenticator(
                store.keys,
                cache,
                shared.buckets,
                settings.authorizer_secret,
                store.now_ms,
                metrics.count_key_lookup,
                requests_per_second=settings.rate_limit,
                failures_per_minute=settings.auth_failure_limit,
            ),
            publish=PublishService(
                store.events, store.now_ms, settings.max_event_bytes, settings.retention_days, arrivals.notify
            ),
            consume=ConsumeService(store.events, store.inboxes, store.now_ms, settings.lease_seconds, arrivals.notify),
            arrivals=arrivals,
            history=HistoryService(store.events, store.inboxes, store.now_ms, arrivals.notify),
            inboxes=InboxService(store.inboxes, store.tenants, store.now_ms, on_deletion=arrivals.notify),
            keys=KeyService(store.keys, store.tenants, store.now_ms),
            tenants=TenantService(store.tenants, store.now_ms),
            stats=StatsService(store.counters, store.inboxes, store.now_ms),
            check_store=ReadinessCheck(store.check).check,
            flush_counts=store.counters.flush,
            exposition=metrics.exposition,
            max_event_bytes=settings.max_event_bytes,
            body_budget=body_budget(settings),
        ),
        metrics.observe_response,
    )
    app.register_blueprint(console.blueprint)
    return app


def body_budget(settings: Settings) -> ByteBudget:
    """Returns a budget with room for several of the largest bodies."""
    largest = MAX_BATCH_SIZE_IN_EVENTS * settings.max_event_bytes
    return ByteBudget(max(_MIN_BODY_BUDGET_BYTES, _PARALLEL_LARGEST_BATCHES * largest))


def start_background(store: Store) -> None:
    """Purges expired rows and flushes counts in threads, until the process exits."""
    for task in (
        BackgroundTask("purge", Retention(store.events, store.now_ms).purge_until, _PURGE_SECONDS),
        BackgroundTask("flush", lambda _stopping: store.counters.flush(at_once=False), _FLUSH_SECONDS),
    ):
        task.start()
        atexit.register(task.stop)
