"""The composition root: settings and store → services → Flask. The only place that wires a service."""

import atexit

from flask import Flask

from authorizer.resolver import Resolver
from inbox import api, console
from inbox.api.services import Services
from inbox.clock import now_ms
from inbox.history import History
from inbox.ingest import Ingest
from inbox.named_inboxes import NamedInboxes
from inbox.polling import Polling
from inbox.retention import BackgroundPurge, Retention
from inbox.settings import Settings
from inbox.store.port import Store
from inbox.waiting import Waits


def create_app(settings: Settings, store: Store) -> Flask:
    """The service as a WSGI app. Call it in the process that serves: a store's connections must not cross a fork."""
    app = Flask("inbox", static_folder=None)
    api.install(
        app,
        Services(
            resolver=Resolver(store.keys.find, settings.key_cache_seconds, now_ms),
            ingest=Ingest(store.events, now_ms, settings.max_event_bytes, settings.retention_days),
            polling=Polling(store.events, store.inboxes, now_ms, settings.lease_seconds),
            waits=Waits(settings.threads // 2),
            history=History(store.events, store.inboxes, now_ms),
            inboxes=NamedInboxes(store.inboxes, now_ms),
            check_store=store.check,
            max_event_bytes=settings.max_event_bytes,
        ),
    )
    console.install(app)
    return app


def purge_in_background(store: Store) -> None:
    """Keeps the store free of what is past its retention, as long as this process lives."""
    purge = BackgroundPurge(Retention(store.events, now_ms))
    purge.start()
    atexit.register(purge.stop)
