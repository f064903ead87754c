"""What the views work with, put into the app once by the composition root."""

from collections.abc import Callable
from dataclasses import dataclass

from flask import Flask, current_app

from authorizer.resolver import Resolver
from inbox.history import History
from inbox.ingest import Ingest
from inbox.named_inboxes import NamedInboxes
from inbox.polling import Polling
from inbox.waiting import Waits

_EXTENSION = "inbox"


@dataclass(frozen=True, slots=True)
class Services:
    resolver: Resolver
    ingest: Ingest
    polling: Polling
    waits: Waits
    history: History
    inboxes: NamedInboxes
    check_store: Callable[[], None]
    max_event_bytes: int


def attach(app: Flask, services: Services) -> None:
    app.extensions[_EXTENSION] = services


def services() -> Services:
    return services_of(current_app)


def services_of(app: Flask) -> Services:
    found: Services = app.extensions[_EXTENSION]
    return found
