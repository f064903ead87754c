"""/inbox: polling, and acknowledging, releasing or extending leases."""

import re
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from flask import Blueprint, Flask, Response, request

from inbox.api.access_log import note_wait
from inbox.api.authorization import check_again, current_access, principal
from inbox.api.endpoint import Endpoint, Success
from inbox.api.examples import DELIVERED_AT, LEASE_EXPIRES_AT, RECEIPT, example_of, named
from inbox.api.problem_types import BAD_REQUEST, NOT_FOUND, PREFETCH_REFUSED
from inbox.api.problems import ProblemError
from inbox.api.request_bodies import has_body
from inbox.api.responses import event_document, json_response
from inbox.api.schemas import polling as schemas
from inbox.api.schemas.events import PolledEvent
from inbox.api.services import services
from inbox.domain.events import DEFAULT_INBOX, InboxKey, Page, Status
from inbox.domain.keys import Scope
from inbox.errors import FieldError, InvalidRequest
from inbox.services.arrivals import LONG_POLLS
from inbox.services.blocking_polls import claim_or_wait

blueprint = Blueprint("inbox", __name__)

_EVENTS = PolledEvent(many=True)
_POLLED = Success(
    _EVENTS,
    "Oldest first.",
    headers=("Inbox-More",),
    examples=named(
        consume=example_of(_EVENTS, status=Status.DELIVERED, deliveries=1, delivered_at=DELIVERED_AT),
        lease=example_of(
            _EVENTS, status=Status.LEASED, deliveries=1, receipt=RECEIPT, lease_expires_at=LEASE_EXPIRES_AT
        ),
        peek=example_of(_EVENTS),
        empty=[],
    ),
)
_SCOPES = (Scope.INBOX_READ,)
_PollEndpoint = partial(
    Endpoint,
    scopes=_SCOPES,
    peek_scopes=(Scope.EVENTS_READ,),
    headers=schemas.PollHeaders(),
    query=schemas.PollParameters(),
    returns={200: _POLLED},
)
_PURPOSE_HEADERS = ("HTTP_SEC_PURPOSE", "HTTP_PURPOSE", "HTTP_X_PURPOSE", "HTTP_X_MOZ")
_PREFETCH = re.compile("prefetch|prerender|preview", re.IGNORECASE)


@blueprint.before_request
def _refuse_unintended_poll() -> None:
    """Raises ProblemError for requests that are not meant as polls: a poll changes events although it is a GET."""
    environ = request.environ
    if any(name in environ and _PREFETCH.search(environ[name]) for name in _PURPOSE_HEADERS):
        raise ProblemError(PREFETCH_REFUSED, PREFETCH_REFUSED.example)
    if environ["REQUEST_METHOD"] == "GET" and has_body(environ):
        # Proxies that expect no body on a GET would take it for the next request.
        raise ProblemError(BAD_REQUEST, "A poll must not have a body.")


def disable_head(app: Flask) -> None:
    """Removes HEAD from the polling routes: Flask would run the view for GET, which is a poll."""
    for rule in app.url_map.iter_rules():
        if rule.endpoint.startswith(f"{blueprint.name}.") and rule.methods:
            rule.methods.discard("HEAD")


@blueprint.get("/inbox")
@_PollEndpoint(problems=(PREFETCH_REFUSED,))
def poll(headers: dict[str, str], query: dict[str, Any]) -> Response:
    """Consume, lease or peek at undelivered events

    This GET changes events: `mode=consume` marks the returned events delivered. A consumer that must not lose events
    uses `mode=lease` and acknowledges what it has processed; events that it does not acknowledge are returned again
    after the lease expires. `HEAD`, prefetches and polls with a body are refused.
    """
    return _poll(DEFAULT_INBOX, headers, query)


@blueprint.get("/inbox/<name>")
@_PollEndpoint(problems=(PREFETCH_REFUSED, NOT_FOUND))
def poll_named(name: str, headers: dict[str, str], query: dict[str, Any]) -> Response:
    """Consume, lease or peek at events of a named inbox

    Like `GET /inbox`, which is the same as `GET /inbox/default`.
    """
    return _poll(name, headers, query)


@blueprint.post("/inbox/ack")
@Endpoint(scopes=_SCOPES, body=schemas.ReceiptsBody(), returns={200: Success(schemas.Acknowledged())})
def acknowledge(body: dict[str, Any]) -> Response:
    """Acknowledge leased events; safe to repeat

    The events become delivered. `lost` lists the receipts whose lease has expired or was released: another consumer may
    have the event. It also lists unknown receipts and receipts of other tenants.
    """
    settled = services().consume.acknowledge(principal().tenant_id, body["receipts"])
    return json_response({"acknowledged": settled.event_ids, "lost": settled.lost})


@blueprint.post("/inbox/release")
@Endpoint(scopes=_SCOPES, body=schemas.ReleaseBody(), returns={200: Success(schemas.Released())})
def release(body: dict[str, Any]) -> Response:
    """Release leased events; safe to repeat

    The events become undelivered at their original position, after `delay_seconds`. A release counts as a lost lease
    only with `failed`. After INBOX_MAX_DELIVERIES lost and failed leases an event is dead, and still listed in
    `released`. Repeating a release has no further effect.
    """
    settled = services().consume.release(
        principal().tenant_id, body["receipts"], body["delay_seconds"], failed=body["failed"]
    )
    return json_response({"released": settled.event_ids, "lost": settled.lost})


@blueprint.post("/inbox/extend")
@Endpoint(scopes=_SCOPES, body=schemas.ExtendBody(), returns={200: Success(schemas.Extended())})
def extend(body: dict[str, Any]) -> Response:
    """Extend leases"""
    settled = services().consume.extend(principal().tenant_id, body["receipts"], body.get("lease_seconds"))
    return json_response({"extended": settled.event_ids, "lost": settled.lost})


def _poll(inbox: str, headers: dict[str, str], query: dict[str, Any]) -> Response:
    consume, tenant_id, limit = services().consume, principal().tenant_id, query["limit"]
    attempt = headers.get("attempt")
    if query["mode"] == "consume":
        claim = partial(consume.consume, tenant_id, inbox, limit, attempt)
    elif query["mode"] == "lease":
        claim = partial(consume.lease, tenant_id, inbox, limit, query.get("lease_seconds"), attempt)
    elif attempt is None:
        claim = partial(consume.peek, tenant_id, inbox, limit, query["order"])
    else:
        detail = "`Inbox-Attempt` is not allowed with mode=peek, which is safe to repeat without it."
        raise InvalidRequest([FieldError("/Inbox-Attempt", detail)])

    page = _claim_or_wait(claim, (tenant_id, inbox), query["wait"]) if query["wait"] else claim()
    documents = [event_document(event) for event in page.events]
    return json_response(documents, headers={"Inbox-More": "true" if page.more else "false"})


def _claim_or_wait(claim: Callable[[], Page], inbox_key: InboxKey, seconds: int) -> Page:
    note_wait()
    long_polls = request.environ.get(LONG_POLLS)
    if long_polls is not None:
        # The server runs the whole request again when an event may have arrived.
        page: Page = long_polls.claim_for_long_poll(request.environ, inbox_key, seconds, claim, current_access())
        return page

    def check_and_claim() -> Page:
        check_again()
        return claim()

    return claim_or_wait(seconds, check_and_claim, _has_disconnected, services().arrivals.on_waiting_change)


def _has_disconnected() -> bool:
    """Returns True if the client has closed its connection. Works only in gunicorn's own workers."""
    connection: socket.socket | None = request.environ.get("gunicorn.socket")
    if connection is None:
        return False
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
