"""What the views work with, put into the app once by the composition root."""

from collections.abc import Callable
from dataclasses import dataclass

from flask import Flask, current_app

from authorizer.resolver import Resolver
from inbox.ingest import Ingest
from inbox.polling import Polling

_EXTENSION = "inbox"


@dataclass(frozen=True, slots=True)
class Services:
    resolver: Resolver
    ingest: Ingest
    polling: Polling
    check_store: Callable[[], None]
    max_event_bytes: int


def attach(app: Flask, services: Services) -> None:
    app.extensions[_EXTENSION] = services


def services() -> Services:
    found: Services = current_app.extensions[_EXTENSION]
    return found
