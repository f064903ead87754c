"""What the views work with, put into the app once by the composition root."""

from collections.abc import Callable
from dataclasses import dataclass

from flask import Flask, current_app

from inbox.api.byte_budget import ByteBudget
from inbox.auth.authenticator import Admission
from inbox.services.arrivals import Arrivals
from inbox.services.blocking_polls import ThreadWaits
from inbox.services.consume import Polling
from inbox.services.history import History
from inbox.services.inboxes import NamedInboxes
from inbox.services.keys import KeyRing
from inbox.services.publish import Ingest
from inbox.services.stats import Stats
from inbox.services.tenants import Registry

_EXTENSION = "inbox"


@dataclass(frozen=True, slots=True)
class Services:
    admission: Admission
    ingest: Ingest
    polling: Polling
    waits: ThreadWaits
    arrivals: Arrivals
    history: History
    inboxes: NamedInboxes
    keys: KeyRing
    registry: Registry
    stats: Stats
    check_store: Callable[[], None]
    flush_counts: Callable[[], None]
    exposition: Callable[[], bytes]
    max_event_bytes: int
    body_budget: ByteBudget


def attach(app: Flask, services: Services) -> None:
    app.extensions[_EXTENSION] = services


def services() -> Services:
    return services_of(current_app)


def services_of(app: Flask) -> Services:
    found: Services = app.extensions[_EXTENSION]
    return found
