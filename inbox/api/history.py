"""/events: listing, replaying and erasing events."""

from typing import Any
from uuid import UUID

from flask import Blueprint, Response

from inbox.api.authorization import principal
from inbox.api.endpoint import Endpoint, Success
from inbox.api.problem_types import EVENT_LEASED, NOT_FOUND
from inbox.api.responses import empty_response, event_document, json_response, next_page
from inbox.api.schemas.events import PolledEvent
from inbox.api.schemas.history import InboxParameter, ListParameters, ReplayBody, ReplayedAnswer
from inbox.api.services import services
from inbox.domain.events import Selection
from inbox.domain.keys import Scope

blueprint = Blueprint("history", __name__)

_READ = (Scope.EVENTS_READ, Scope.INBOX_READ)


@blueprint.get("/events")
@Endpoint(
    scopes=_READ,
    query=ListParameters(),
    returns={200: Success(PolledEvent(many=True), "Newest first.", headers=("Link",))},
    problems=(NOT_FOUND,),
)
def list_events(query: dict[str, Any]) -> Response:
    """List events of any status

    Changes nothing. Following the header `Link` returns every event once, even if events are sent meanwhile. A page
    with `Link` may have fewer events than `limit`, even none. A cursor is only valid with the same filters and order.
    """
    order, limit, cursor = query.pop("order"), query.pop("limit"), query.pop("cursor", None)
    events, next_cursor = services().history.list(principal().tenant_id, Selection(**query), order, limit, cursor)
    documents = [event_document(event) for event in events]
    return json_response(documents, headers=next_page("cursor", next_cursor))


@blueprint.get("/events/<uuid:event_id>")
@Endpoint(scopes=_READ, query=InboxParameter(), returns={200: Success(PolledEvent())}, problems=(NOT_FOUND,))
def get_event(event_id: UUID, query: dict[str, str]) -> Response:
    """Get one event"""
    event = services().history.get(principal().tenant_id, query["inbox"], str(event_id))
    return json_response(event_document(event))


@blueprint.post("/events/<uuid:event_id>/replay")
@Endpoint(
    scopes=(Scope.INBOX_READ,),
    query=InboxParameter(),
    returns={200: Success(PolledEvent())},
    problems=(NOT_FOUND, EVENT_LEASED),
)
def replay_event(event_id: UUID, query: dict[str, str]) -> Response:
    """Replay one event

    A delivered or dead event becomes undelivered again, at its original position. An undelivered event stays
    unchanged. A leased event is a 409.
    """
    event = services().history.replay(principal().tenant_id, query["inbox"], str(event_id))
    return json_response(event_document(event))


@blueprint.post("/events/replay")
@Endpoint(
    scopes=(Scope.INBOX_READ,), body=ReplayBody(), returns={200: Success(ReplayedAnswer())}, problems=(NOT_FOUND,)
)
def replay_events(body: Selection) -> Response:
    """Replay all matching events

    Delivered and dead events become undelivered again, up to 1,000 per request, oldest first: repeat the request while
    `more` is true. Leased events stay unchanged. An empty object selects all events of the inbox `default`.
    """
    replayed = services().history.replay_all(principal().tenant_id, body)
    return json_response({"replayed": replayed.count, "more": replayed.more})


@blueprint.delete("/events/<uuid:event_id>")
@Endpoint(
    scopes=(Scope.TENANT_MANAGE,), returns={204: Success(description="Erased from every inbox.")}, problems=(NOT_FOUND,)
)
def erase_event(event_id: UUID) -> Response:
    """Erase one event from every inbox

    Receipts for the event become unknown, and its idempotency key can be used again.
    """
    services().history.erase(principal().tenant_id, str(event_id))
    return empty_response()
