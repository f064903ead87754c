"""/inbox: polling, and settling what was leased."""

import re
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flask import Flask, Response, request

from inbox.api.access_log import note_wait
from inbox.api.auth import check_again, check_scopes, current_access, principal, requires
from inbox.api.examples import HANDED_OUT_AT, LEASED_UNTIL, RECEIPT, example_of, named
from inbox.api.openapi import Blueprint
from inbox.api.problem_types import BAD_REQUEST, NOT_JSON, PREFETCH_REFUSED
from inbox.api.problems import Refusal
from inbox.api.request_bodies import has_body
from inbox.api.response_headers import MORE
from inbox.api.responses import event_document, json_answer
from inbox.api.schemas.events import PolledEvent
from inbox.api.schemas.fields import NoParameters
from inbox.api.schemas.polling import (
    Acknowledged,
    ExtendBody,
    Extended,
    PollHeaders,
    PollParameters,
    ReceiptsBody,
    ReleaseBody,
    Released,
)
from inbox.api.services import services
from inbox.domain.events import DEFAULT_INBOX, InboxKey, Order, Page, Status
from inbox.domain.keys import Scope
from inbox.errors import FieldError, InvalidRequest
from inbox.services.blocking_polls import LONG_POLLS

blueprint = Blueprint("inbox", __name__, description="Events come out.")

_EVENTS = PolledEvent(many=True)
_POLLED = named(
    consume=example_of(_EVENTS, status=Status.DELIVERED, deliveries=1, delivered_at=HANDED_OUT_AT),
    lease=example_of(_EVENTS, status=Status.LEASED, deliveries=1, receipt=RECEIPT, lease_expires_at=LEASED_UNTIL),
    peek=example_of(_EVENTS),
    empty=[],
)
_PEEK_SCOPES = (Scope.EVENTS_READ, Scope.INBOX_READ)
_TAKE_SCOPES = (Scope.INBOX_READ,)
_PURPOSES = ("HTTP_SEC_PURPOSE", "HTTP_PURPOSE", "HTTP_X_PURPOSE", "HTTP_X_MOZ")
_NOBODY_READS = re.compile("prefetch|prerender|preview", re.IGNORECASE)


def _refuse_what_is_no_poll() -> None:
    """A poll changes things although it is a GET, so nothing but a real one may cause it."""
    environ = request.environ
    if any(name in environ and _NOBODY_READS.search(environ[name]) for name in _PURPOSES):
        raise Refusal(PREFETCH_REFUSED, "A prefetch would take events that nobody reads.")
    if environ["REQUEST_METHOD"] == "GET" and has_body(environ):
        # A proxy that knows of no body behind a GET takes it for the next request.
        raise Refusal(BAD_REQUEST, "A poll has no body.")


blueprint.before_request(_refuse_what_is_no_poll)


def refuse_head(app: Flask) -> None:
    """Flask answers HEAD wherever it answers GET, by running the view: here that would be a poll."""
    for rule in app.url_map.iter_rules():
        if rule.endpoint.startswith(f"{blueprint.name}.") and rule.methods:
            rule.methods.discard("HEAD")


@blueprint.route("/inbox", methods=["GET"])
@requires(*_PEEK_SCOPES)
@blueprint.arguments(PollHeaders(), location="headers")
@blueprint.arguments(PollParameters(), location="query")
@blueprint.response(200, _EVENTS, description="Oldest first.", headers=MORE, examples=_POLLED)
@blueprint.refusals(400, 401, PREFETCH_REFUSED, 422, 503)
def poll(headers: dict[str, str], parameters: dict[str, Any]) -> Response:
    """Take the undelivered events, lease them, or peek at them

    It changes things although it is a GET: `mode=consume` marks what it hands out delivered. A consumer that must not
    lose anything takes `mode=lease` and acknowledges what it has done; the rest comes again when the lease is over.
    `HEAD`, prefetches and polls with a body are refused. With `events:read` alone only `mode=peek` is allowed.
    """
    return _poll(DEFAULT_INBOX, headers, parameters)


@blueprint.route("/inbox/<name>", methods=["GET"])
@requires(*_PEEK_SCOPES)
@blueprint.arguments(PollHeaders(), location="headers")
@blueprint.arguments(PollParameters(), location="query")
@blueprint.response(200, _EVENTS, description="Oldest first.", headers=MORE, examples=_POLLED)
@blueprint.refusals(400, 401, PREFETCH_REFUSED, 404, 422, 503)
def poll_named(headers: dict[str, str], parameters: dict[str, Any], name: str) -> Response:
    """Take, lease or peek at what a named inbox has

    As `GET /inbox`, which is `/inbox/default`.
    """
    return _poll(name, headers, parameters)


@blueprint.route("/inbox/ack", methods=["POST"])
@requires(Scope.INBOX_READ)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.arguments(ReceiptsBody())
@blueprint.response(200, Acknowledged)
@blueprint.refusals(NOT_JSON, 401, 403, 413, 415, 422, 503)
def acknowledge(_parameters: dict[str, Any], body: dict[str, Any]) -> Response:
    """Mark leased events delivered; safe to repeat

    A receipt is lost once its lease is over or was released, and its event may be in other hands. One that was never a
    receipt, or another tenant's, is lost too, and no error.
    """
    settled = services().consume.acknowledge(principal().tenant_id, body["receipts"])
    return json_answer({"acknowledged": settled.event_ids, "lost": settled.lost})


@blueprint.route("/inbox/release", methods=["POST"])
@requires(Scope.INBOX_READ)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.arguments(ReleaseBody())
@blueprint.response(200, Released)
@blueprint.refusals(NOT_JSON, 401, 403, 413, 415, 422, 503)
def release(_parameters: dict[str, Any], body: dict[str, Any]) -> Response:
    """Give leased events back, each at its old place; safe to repeat

    No poll gets them for `delay_seconds`. A release counts as a lost lease only with `failed`, for an event that could
    not be handled. After INBOX_MAX_DELIVERIES lost and failed leases an event is dead, and still listed in `released`.
    Of repeated releases the first counts.
    """
    settled = services().consume.release(
        principal().tenant_id, body["receipts"], body["delay_seconds"], failed=body["failed"]
    )
    return json_answer({"released": settled.event_ids, "lost": settled.lost})


@blueprint.route("/inbox/extend", methods=["POST"])
@requires(Scope.INBOX_READ)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.arguments(ExtendBody())
@blueprint.response(200, Extended)
@blueprint.refusals(NOT_JSON, 401, 403, 413, 415, 422, 503)
def extend(_parameters: dict[str, Any], body: dict[str, Any]) -> Response:
    """Keep leased events for longer"""
    settled = services().consume.extend(principal().tenant_id, body["receipts"], body.get("lease_seconds"))
    return json_answer({"extended": settled.event_ids, "lost": settled.lost})


def _poll(inbox: str, headers: dict[str, str], parameters: dict[str, Any]) -> Response:
    scopes = _PEEK_SCOPES if parameters["mode"] == "peek" else _TAKE_SCOPES
    check_scopes(*scopes)
    consume, tenant_id, limit = services().consume, principal().tenant_id, parameters["limit"]
    attempt = headers.get("attempt")
    if parameters["mode"] == "consume":
        take = partial(consume.consume, tenant_id, inbox, limit, attempt)
    elif parameters["mode"] == "lease":
        take = partial(consume.lease, tenant_id, inbox, limit, parameters.get("lease_seconds"), attempt)
    elif attempt is None:
        take = partial(consume.peek, tenant_id, inbox, limit, Order(parameters["order"]))
    else:
        raise InvalidRequest([FieldError("/Inbox-Attempt", "Not with mode=peek, which can be repeated anyway.")])

    if parameters["wait"]:
        note_wait()
        page = _claim_or_wait(take, (tenant_id, inbox), parameters["wait"], scopes)
    else:
        page = take()
    documents = [event_document(event) for event in page.events]
    return json_answer(documents, headers={"Inbox-More": "true" if page.more else "false"})


def _claim_or_wait(take: Callable[[], Page], inbox_key: InboxKey, seconds: int, scopes: Sequence[Scope]) -> Page:
    long_polls = request.environ.get(LONG_POLLS)
    if long_polls is not None:
        # The whole request is run again when an event may have arrived.
        page: Page = long_polls.claim_or_wait(request.environ, inbox_key, seconds, take, current_access(*scopes))
        return page

    def check_and_take() -> Page:
        # The key may have been revoked during the wait.
        check_again(*scopes)
        return take()

    return services().waits.claim_or_wait(seconds, check_and_take, _client_is_gone)


def _client_is_gone() -> bool:
    """Returns True if the client has closed its connection. Only gunicorn's own workers show the connection."""
    connection: socket.socket | None = request.environ.get("gunicorn.socket")
    if connection is None:
        return False
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
