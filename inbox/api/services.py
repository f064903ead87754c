"""The services that views use, attached to the Flask app by the composition root."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flask import Flask, current_app

from inbox.auth.authenticator import Authenticator
from inbox.services.arrivals import Arrivals
from inbox.services.consume import ConsumeService
from inbox.services.history import HistoryService
from inbox.services.inboxes import InboxService
from inbox.services.keys import KeyService
from inbox.services.publish import PublishService
from inbox.services.stats import StatsService
from inbox.services.tenants import TenantService

if TYPE_CHECKING:
    from inbox.api.request_bodies import ByteBudget

_EXTENSION = "inbox"


@dataclass(frozen=True, slots=True)
class Services:
    authenticator: Authenticator
    publish: PublishService
    consume: ConsumeService
    arrivals: Arrivals
    history: HistoryService
    inboxes: InboxService
    keys: KeyService
    tenants: TenantService
    stats: StatsService
    check_store: Callable[[], None]
    flush_counts: Callable[[], None]
    exposition: Callable[[], bytes]
    max_event_bytes: int
    body_budget: "ByteBudget"


def attach(app: Flask, services: Services) -> None:
    app.extensions[_EXTENSION] = services


def services() -> Services:
    return services_of(current_app)


def services_of(app: Flask) -> Services:
    found: Services = app.extensions[_EXTENSION]
    return found
