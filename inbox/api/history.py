"""/events: looking back, replaying, erasing."""

from typing import Any

from flask import Response

from inbox.api.auth import principal, requires
from inbox.api.openapi import Blueprint
from inbox.api.problem_types import EVENT_LEASED, NOT_JSON
from inbox.api.response_headers import NEXT
from inbox.api.responses import empty_answer, event_document, json_answer, next_page
from inbox.api.schemas.events import PolledEvent
from inbox.api.schemas.fields import NoParameters
from inbox.api.schemas.history import InboxParameter, ListParameters, ReplayBody, ReplayedAnswer
from inbox.api.services import services
from inbox.domain.events import Selection
from inbox.domain.keys import Scope

blueprint = Blueprint("history", __name__, description="Events are looked at again, replayed, erased.")


@blueprint.route("/events", methods=["GET"])
@requires(Scope.EVENTS_READ, Scope.INBOX_READ)
@blueprint.arguments(ListParameters(), location="query")
@blueprint.response(200, PolledEvent(many=True), description="Newest first.", headers=NEXT)
@blueprint.refusals(401, 403, 404, 422, 503)
def list_events(parameters: dict[str, Any]) -> Response:
    """List events in whatever status

    Changes nothing. The header `Link` leads through everything once, whatever is sent meanwhile; an answer that has it
    may have fewer events than asked for, even none. A cursor belongs to its filters and its order.
    """
    order, limit, cursor = parameters.pop("order"), parameters.pop("limit"), parameters.pop("cursor", None)
    found = services().history.list(principal().tenant_id, Selection(**parameters), order, limit, cursor)
    documents = [event_document(event) for event in found.events]
    return json_answer(documents, headers=next_page("cursor", found.cursor))


@blueprint.route("/events/<uuid:event_id>", methods=["GET"])
@requires(Scope.EVENTS_READ, Scope.INBOX_READ)
@blueprint.arguments(InboxParameter(), location="query")
@blueprint.response(200, PolledEvent)
@blueprint.refusals(401, 403, 404, 422, 503)
def get_event(parameters: dict[str, str], event_id: Any) -> Response:
    """Look at one event"""
    event = services().history.get(principal().tenant_id, parameters["inbox"], str(event_id))
    return json_answer(event_document(event))


@blueprint.route("/events/<uuid:event_id>/replay", methods=["POST"])
@requires(Scope.INBOX_READ)
@blueprint.arguments(InboxParameter(), location="query")
@blueprint.response(200, PolledEvent)
@blueprint.refusals(401, 403, 404, EVENT_LEASED, 422, 503)
def replay_event(parameters: dict[str, str], event_id: Any) -> Response:
    """Make one event undelivered again

    A delivered or dead one, at its old place. An undelivered one stays as it is; a leased one is a 409.
    """
    event = services().history.replay(principal().tenant_id, parameters["inbox"], str(event_id))
    return json_answer(event_document(event))


@blueprint.route("/events/replay", methods=["POST"])
@requires(Scope.INBOX_READ)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.arguments(ReplayBody())
@blueprint.response(200, ReplayedAnswer)
@blueprint.refusals(NOT_JSON, 401, 403, 404, 413, 415, 422, 503)
def replay_events(_parameters: dict[str, Any], selection: Selection) -> Response:
    """Make delivered and dead events undelivered again

    Up to 1,000 a call, the oldest first: repeat it while there are `more`. Leased events are left alone. An empty
    object stands for everything in the inbox `default`.
    """
    replayed = services().history.replay_all(principal().tenant_id, selection)
    return json_answer({"replayed": replayed.count, "more": replayed.more})


@blueprint.route("/events/<uuid:event_id>", methods=["DELETE"])
@requires(Scope.TENANT_MANAGE)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.response(204, description="Erased, in every inbox.")
@blueprint.refusals(401, 403, 404, 422, 503)
def erase_event(_parameters: dict[str, Any], event_id: Any) -> Response:
    """Erase one event everywhere

    In every inbox. A receipt for it is lost, and its idempotency key is free again.
    """
    services().history.erase(principal().tenant_id, str(event_id))
    return empty_answer()
