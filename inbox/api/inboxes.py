"""/inboxes: named inboxes, and enabling or disabling `default`."""

from typing import Any

from flask import Blueprint, Response

from inbox.api.authorization import principal
from inbox.api.endpoint import Endpoint, Success
from inbox.api.problem_types import NOT_FOUND, PRECONDITION_FAILED, TOO_MANY_INBOXES
from inbox.api.responses import empty_response, inbox_document, json_response
from inbox.api.schemas.inboxes import InboxBody, NamedInbox, SaveInboxHeaders
from inbox.api.services import services
from inbox.domain.keys import Scope

blueprint = Blueprint("inboxes", __name__)

_READ = (Scope.EVENTS_READ, Scope.INBOX_READ, Scope.TENANT_MANAGE)
_MANAGE = (Scope.TENANT_MANAGE,)


@blueprint.get("/inboxes")
@Endpoint(scopes=_READ, returns={200: Success(NamedInbox(many=True), "Sorted by name.")})
def list_inboxes() -> Response:
    """List the named inboxes

    `default` is not listed: GET /inboxes/default shows whether it is enabled.
    """
    return json_response([inbox_document(inbox) for inbox in services().inboxes.all(principal().tenant_id)])


@blueprint.get("/inboxes/<name>")
@Endpoint(scopes=_READ, returns={200: Success(NamedInbox())}, problems=(NOT_FOUND,))
def get_inbox(name: str) -> Response:
    """Get one inbox"""
    return json_response(inbox_document(services().inboxes.get(principal().tenant_id, name)))


@blueprint.put("/inboxes/<name>")
@Endpoint(
    scopes=_MANAGE,
    headers=SaveInboxHeaders(),
    body=InboxBody(),
    returns={
        201: Success(NamedInbox(), "Created. It receives events that are sent from now on.", headers=("Location",)),
        200: Success(NamedInbox(), "Changed. This applies to events that are sent from now on."),
    },
    problems=(NOT_FOUND, TOO_MANY_INBOXES, PRECONDITION_FAILED),
)
def save_inbox(name: str, headers: dict[str, str], body: dict[str, Any]) -> Response:
    """Create a named inbox or change which events it receives, or enable or disable `default`

    A named inbox receives a copy of every event whose type matches one of its patterns, or of every event if it has no
    patterns. A tenant can have up to 50. With `If-None-Match: *` the request only creates an inbox, and never changes
    one.

    `PUT /inboxes/default` accepts `enabled` only. While `default` is disabled, polls of `default` return no new events;
    named inboxes are not affected. Every event can still be looked up and listed in `default`, as `delivered`.
    """
    replace = "if_none_match" not in headers
    inbox, new = services().inboxes.save(principal().tenant_id, name, **body, replace=replace)
    if new:
        return json_response(inbox_document(inbox), 201, {"Location": f"/inboxes/{inbox.name}"})
    return json_response(inbox_document(inbox))


@blueprint.delete("/inboxes/<name>")
@Endpoint(
    scopes=_MANAGE, returns={204: Success(description="Deleted, with its copies of events.")}, problems=(NOT_FOUND,)
)
def remove_inbox(name: str) -> Response:
    """Delete a named inbox and its copies of events

    The inbox is gone from the first request on. A 503 means that copies remain: repeat the request to delete them.
    """
    services().inboxes.delete(principal().tenant_id, name)
    return empty_response()
