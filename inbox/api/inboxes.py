"""/inboxes: named inboxes, and turning `default` on or off."""

from typing import Any

from flask import Response

from inbox.api.auth import principal, requires
from inbox.api.openapi import Blueprint
from inbox.api.problem_types import NOT_JSON, PRECONDITION_FAILED, TOO_MANY_INBOXES
from inbox.api.response_headers import LOCATION
from inbox.api.responses import empty_answer, inbox_document, json_answer
from inbox.api.schemas.fields import NoParameters
from inbox.api.schemas.inboxes import InboxBody, NamedInbox, SaveInboxHeaders
from inbox.api.services import services
from inbox.domain.keys import Scope

blueprint = Blueprint("inboxes", __name__, description="Inboxes with a copy of each event that matches.")


@blueprint.route("/inboxes", methods=["GET"])
@requires(Scope.EVENTS_READ, Scope.INBOX_READ, Scope.TENANT_MANAGE)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.response(200, NamedInbox(many=True), description="In the order of their names.")
@blueprint.refusals(401, 403, 422, 503)
def list_inboxes(_parameters: dict[str, Any]) -> Response:
    """List the named inboxes

    `default` is not among them: GET /inboxes/default says whether it is on.
    """
    return json_answer([inbox_document(inbox) for inbox in services().inboxes.all(principal().tenant_id)])


@blueprint.route("/inboxes/<name>", methods=["GET"])
@requires(Scope.EVENTS_READ, Scope.INBOX_READ, Scope.TENANT_MANAGE)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.response(200, NamedInbox)
@blueprint.refusals(401, 403, 404, 422, 503)
def get_inbox(_parameters: dict[str, Any], name: str) -> Response:
    """Look at one inbox"""
    return json_answer(inbox_document(services().inboxes.get(principal().tenant_id, name)))


@blueprint.route("/inboxes/<name>", methods=["PUT"])
@requires(Scope.TENANT_MANAGE)
@blueprint.arguments(SaveInboxHeaders(), location="headers")
@blueprint.arguments(NoParameters(), location="query")
@blueprint.arguments(InboxBody())
@blueprint.response(
    201, NamedInbox, description="It is new, and gets every event that is sent from now on.", headers=LOCATION
)
@blueprint.response(200, NamedInbox, description="Changed: from now on it takes these events, or is on or off.")
@blueprint.refusals(NOT_JSON, 401, 403, 404, TOO_MANY_INBOXES, PRECONDITION_FAILED, 413, 415, 422, 503)
def save_inbox(headers: dict[str, str], _parameters: dict[str, Any], body: dict[str, Any], name: str) -> Response:
    """Create a named inbox or change which events it takes, or turn `default` on or off

    From now on it gets a copy of every event of a type that matches, or of every event without patterns. A tenant can
    have 50. `If-None-Match: *` only creates an inbox, and never changes one.

    `PUT /inboxes/default` takes `enabled` only. While `default` is off, polls of `default` get no new events, and
    named inboxes get theirs as before. Every event can still be looked up and listed in `default`, as `delivered`.
    """
    replace = "if_none_match" not in headers
    inbox, new = services().inboxes.save(principal().tenant_id, name, **body, replace=replace)
    if new:
        return json_answer(inbox_document(inbox), 201, {"Location": f"/inboxes/{inbox.name}"})
    return json_answer(inbox_document(inbox))


@blueprint.route("/inboxes/<name>", methods=["DELETE"])
@requires(Scope.TENANT_MANAGE)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.response(204, description="Removed, with its copies.")
@blueprint.refusals(401, 403, 404, 422, 503)
def remove_inbox(_parameters: dict[str, Any], name: str) -> Response:
    """Remove a named inbox and its copies

    From the first call on nobody sees it. A 503 says that there are more copies, and repeating the call goes on.
    """
    services().inboxes.delete(principal().tenant_id, name)
    return empty_answer()
