"""/events, /events/batch: sending events."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from flask import Blueprint, Response

from inbox.api.authorization import principal
from inbox.api.endpoint import Endpoint, Success
from inbox.api.examples import example_of, named
from inbox.api.problem_types import IDEMPOTENCY_CONFLICT
from inbox.api.responses import json_response, stored_document
from inbox.api.schemas.events import MAX_BATCH, Envelope, SendHeaders, SendParameters, StoredEvent
from inbox.api.services import services
from inbox.domain.keys import Scope
from inbox.errors import FieldError, InvalidRequest
from inbox.services.publish import Submission

blueprint = Blueprint("events", __name__)

_SendEndpoint = partial(
    Endpoint,
    scopes=(Scope.EVENTS_WRITE,),
    headers=SendHeaders(),
    query=SendParameters(),
    problems=(IDEMPOTENCY_CONFLICT,),
)
_REPLAYED = {"Idempotency-Replayed": "true"}
_EVENT = {"anyOf": [Envelope, {"$ref": "#/components/schemas/RawEvent"}]}
_ENVELOPE = example_of(Envelope())
_REPEATABLE = example_of(Envelope(), idempotency_key="order-1001")
_WEBHOOK = {"action": "opened", "issue": {"number": 7, "title": "It does not start"}}


@blueprint.post("/events")
@_SendEndpoint(
    body=Envelope(),
    body_schema=_EVENT,
    body_examples=named(envelope=_ENVELOPE, repeatable=_REPEATABLE, webhook=_WEBHOOK),
    returns={
        201: Success(StoredEvent(), "Stored durably.", headers=("Location",)),
        200: Success(
            StoredEvent(), "Already stored under this idempotency key.", headers=("Location", "Idempotency-Replayed")
        ),
    },
)
def send_event(headers: dict[str, str], query: dict[str, Any], body: Submission) -> Response:
    """Send one event

    A body with a member `payload` is an envelope. An object without `payload` is stored whole as the payload, and with
    `raw=true` so is any object: webhooks can be sent here directly. The response is sent after the event is on disk.

    Repeating the same event with the same idempotency key returns the first response again, with status 200. A
    different event with the same key is a 409.
    """
    submission = _with_key(_with_type(body, query.get("event_type")), headers.get("idempotency_key"))
    stored = services().publish.send(principal().tenant_id, submission)
    location = {"Location": f"/events/{stored.event_id}"}
    if stored.repeated:
        return json_response(stored_document(stored), 200, location | _REPLAYED)
    return json_response(stored_document(stored), 201, location)


@blueprint.post("/events/batch")
@_SendEndpoint(
    body=Envelope(many=True),
    body_schema={"type": "array", "minItems": 1, "maxItems": MAX_BATCH, "items": _EVENT},
    body_examples=named(envelopes=[_ENVELOPE, _ENVELOPE], webhooks=[_WEBHOOK]),
    returns={
        201: Success(StoredEvent(many=True), "All events are stored, in the same order."),
        200: Success(StoredEvent(many=True), "All events were stored before.", headers=("Idempotency-Replayed",)),
    },
)
def send_batch(headers: dict[str, str], query: dict[str, Any], body: Iterator[Submission]) -> Response:
    """Send up to 500 events, all or nothing

    The response lists the events in the same order. One invalid event rejects the whole batch, with a pointer to it.
    The header `Idempotency-Key` makes the whole batch safe to repeat; an event's own `idempotency_key` makes that event
    safe to repeat.
    """
    submissions = map(partial(_with_type, event_type=query["event_type"]), body) if "event_type" in query else body
    stored = services().publish.send_batch(principal().tenant_id, submissions, headers.get("idempotency_key"))
    documents = [stored_document(each) for each in stored]
    if all(each.repeated for each in stored):
        return json_response(documents, 200, _REPLAYED)
    return json_response(documents, 201)


def _with_type(submission: Submission, event_type: str | None) -> Submission:
    if submission.event_type is None and event_type is not None:
        return submission._replace(event_type=event_type)
    return submission


def _with_key(submission: Submission, idempotency_key: str | None) -> Submission:
    if idempotency_key is None:
        return submission
    if submission.idempotency_key not in (None, idempotency_key):
        raise InvalidRequest(
            [FieldError("/idempotency_key", "`idempotency_key` differs from the header Idempotency-Key.")]
        )
    return submission._replace(idempotency_key=idempotency_key)
