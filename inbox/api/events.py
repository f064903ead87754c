"""/events: sending."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from flask import Response

from inbox.api.auth import principal, requires
from inbox.api.examples import example_of, named
from inbox.api.openapi import Blueprint
from inbox.api.problem_types import IDEMPOTENCY_CONFLICT, NOT_JSON
from inbox.api.response_headers import LOCATION, REPLAYED
from inbox.api.responses import json_answer, stored_document
from inbox.api.schemas.events import MAX_BATCH, Envelope, SendHeaders, SendParameters, StoredEvent
from inbox.api.services import services
from inbox.domain.keys import Scope
from inbox.errors import FieldError, InvalidRequest
from inbox.services.publish import Submission

blueprint = Blueprint("events", __name__, description="Events go in.")

_REPLAYED = {"Idempotency-Replayed": "true"}
_EVENT = {"anyOf": [Envelope, {"$ref": "#/components/schemas/RawEvent"}]}
_ONE = {"content": {"application/json": {"schema": _EVENT}}}
_MANY = {
    "content": {
        "application/json": {"schema": {"type": "array", "minItems": 1, "maxItems": MAX_BATCH, "items": _EVENT}}
    }
}
_ENVELOPE = example_of(Envelope())
_REPEATABLE = example_of(Envelope(), idempotency_key="order-1001")
_WEBHOOK = {"action": "opened", "issue": {"number": 7, "title": "It does not start"}}
_REFUSED = (NOT_JSON, 401, 403, IDEMPOTENCY_CONFLICT, 413, 415, 422, 503)


@blueprint.route("/events", methods=["POST"])
@requires(Scope.EVENTS_WRITE)
@blueprint.doc(requestBody=_ONE)
@blueprint.arguments(SendHeaders(), location="headers")
@blueprint.arguments(SendParameters(), location="query")
@blueprint.arguments(Envelope(), examples=named(envelope=_ENVELOPE, repeatable=_REPEATABLE, webhook=_WEBHOOK))
@blueprint.response(201, StoredEvent, description="Stored: it is on disk.", headers=LOCATION)
@blueprint.response(
    200,
    StoredEvent,
    description="It was stored before under this idempotency key.",
    headers=LOCATION | REPLAYED,
)
@blueprint.refusals(*_REFUSED)
def send_event(headers: dict[str, str], parameters: dict[str, Any], submission: Submission) -> Response:
    """Send one event

    A body with a member `payload` is an envelope. An object without `payload` is taken whole as the payload, and with
    `raw=true` so is any object: webhooks can point straight here. The answer comes after the event is on disk.

    The same idempotency key with the same event gets the first answer again, with 200; with another event it is a 409.
    """
    submission = _keyed(_typed(submission, parameters.get("event_type")), headers.get("idempotency_key"))
    stored = services().publish.send(principal().tenant_id, submission)
    location = {"Location": f"/events/{stored.event_id}"}
    if stored.replayed:
        return json_answer(stored_document(stored), 200, location | _REPLAYED)
    return json_answer(stored_document(stored), 201, location)


@blueprint.route("/events/batch", methods=["POST"])
@requires(Scope.EVENTS_WRITE)
@blueprint.doc(requestBody=_MANY)
@blueprint.arguments(SendHeaders(), location="headers")
@blueprint.arguments(SendParameters(), location="query")
@blueprint.arguments(Envelope(many=True), examples=named(envelopes=[_ENVELOPE, _ENVELOPE], webhooks=[_WEBHOOK]))
@blueprint.response(201, StoredEvent(many=True), description="Stored, all of them, in the same order.")
@blueprint.response(200, StoredEvent(many=True), description="All of them were stored before.", headers=REPLAYED)
@blueprint.refusals(*_REFUSED)
def send_batch(headers: dict[str, str], parameters: dict[str, Any], submissions: Iterator[Submission]) -> Response:
    """Send up to 500 events, stored all or refused all

    The answer has them in the same order. One bad event refuses the whole batch, with a pointer to it. The header
    `Idempotency-Key` makes the batch as a whole repeatable, an event's own `idempotency_key` that event.
    """
    if "event_type" in parameters:
        submissions = map(partial(_typed, event_type=parameters["event_type"]), submissions)
    stored = services().publish.send_batch(principal().tenant_id, submissions, headers.get("idempotency_key"))
    documents = [stored_document(each) for each in stored]
    if all(each.replayed for each in stored):
        return json_answer(documents, 200, _REPLAYED)
    return json_answer(documents, 201)


def _typed(submission: Submission, event_type: str | None) -> Submission:
    if submission.event_type is None and event_type is not None:
        return submission._replace(event_type=event_type)
    return submission


def _keyed(submission: Submission, header: str | None) -> Submission:
    if header is None:
        return submission
    if submission.idempotency_key not in (None, header):
        raise InvalidRequest([FieldError("/idempotency_key", "Differs from the header Idempotency-Key.")])
    return submission._replace(idempotency_key=header)
