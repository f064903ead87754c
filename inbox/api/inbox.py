"""/inbox: polling."""

import re
from typing import Any

from flask import Flask, Response, request

from inbox.api.answers import event_document, json_answer
from inbox.api.auth import principal, requires
from inbox.api.openapi import Blueprint
from inbox.api.problem_catalogue import PREFETCH_REFUSED
from inbox.api.problems import Refusal
from inbox.api.schemas import PolledEvent, PollParameters
from inbox.api.services import services
from inbox.events import Order
from inbox.tenants import Scope

blueprint = Blueprint("inbox", __name__, description="Events come out.")

_MORE = {"Inbox-More": {"description": "Whether undelivered events remain.", "schema": {"type": "boolean"}}}
_PURPOSE_HEADERS = ("Sec-Purpose", "Purpose", "X-Purpose", "X-Moz")
_NOBODY_READS = re.compile("prefetch|prerender|preview", re.IGNORECASE)


def _refuse_prefetch() -> None:
    """A poll changes things although it is a GET, so nothing but a real one may cause it."""
    if any(_NOBODY_READS.search(request.headers.get(name, "")) for name in _PURPOSE_HEADERS):
        raise Refusal(PREFETCH_REFUSED, "A prefetch would take events that nobody reads.")


blueprint.before_request(_refuse_prefetch)


def refuse_head(app: Flask) -> None:
    """Flask answers HEAD wherever it answers GET, by running the view: here that would be a poll."""
    for rule in app.url_map.iter_rules():
        if rule.endpoint.startswith(f"{blueprint.name}.") and rule.methods:
            rule.methods.discard("HEAD")


@blueprint.route("/inbox", methods=["GET"])
@requires(Scope.INBOX_READ)
@blueprint.arguments(PollParameters(), location="query")
@blueprint.response(200, PolledEvent(many=True), description="Oldest first.", headers=_MORE)
@blueprint.refusals(401, 403, 422, 503)
def poll(parameters: dict[str, Any]) -> Response:
    """Take the undelivered events, or peek at them"""
    tenant_id, limit = principal().tenant_id, parameters["limit"]
    if parameters["mode"] == "peek":
        page = services().polling.peek(tenant_id, limit, Order(parameters["order"]))
    else:
        page = services().polling.consume(tenant_id, limit)
    documents = [event_document(event) for event in page.events]
    return json_answer(documents, headers={"Inbox-More": "true" if page.more else "false"})
