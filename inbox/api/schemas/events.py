"""Schemas of events: as they are sent, and as they are returned."""

import re
from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, post_load, pre_load
from marshmallow.fields import UUID, DateTime, Dict, Integer, String

from inbox.api.examples import EVENT_ID, EVENT_TYPE, PAYLOAD, STORED_AT, STORED_MS, doc, example
from inbox.api.schemas.fields import Choice, EventType, Flag, HeaderText, JSONObject, RequestSchema, Text, length
from inbox.domain.events import Status
from inbox.services.publish import Submission

MAX_BATCH = 500
MAX_IDEMPOTENCY_KEY = 255

_TRY_RAW = (
    "An object with a member `payload` is read as an envelope of `payload`, `event_type` and `idempotency_key`. "
    "Add `?raw=true` to the URL to store the whole object as the payload."
)
_MEMBERS = {"event_type", "payload", "idempotency_key"}
_is_event_type = re.compile(EventType.PATTERN, re.ASCII).fullmatch


class Envelope(RequestSchema):
    event_type = EventType(allow_none=True)
    payload = JSONObject(required=True, metadata=doc("Any JSON object.", PAYLOAD))
    idempotency_key = Text(
        validate=length(1, MAX_IDEMPOTENCY_KEY), metadata=doc("Sending the same event again stores it only once.")
    )

    max_elements = MAX_BATCH
    # Member names, `event_type` and `idempotency_key`.
    max_bytes_around_payload = 4096

    def load(self, data: Any, **options: Any) -> Any:
        """Returns the submission. Loads a valid event without marshmallow, for speed. marshmallow reports errors."""
        return _load_valid(data) or super().load(data, **options)

    def schema_for(self, parameters: Mapping[str, str]) -> "Envelope":
        return _RAW_BODY if parameters.get("raw") == "true" else self

    def advise(self, messages: Mapping[str, Any]) -> str:
        """Suggests `raw=true` for an object that was read as an envelope but probably is none."""
        return _TRY_RAW if messages.keys() - {"event_type", "idempotency_key", "_schema"} else ""

    @pre_load
    def _wrap_payload(self, data: Any, **_: Any) -> Any:
        """Returns an envelope, also for an object without `payload`, which is itself the payload."""
        return {"payload": data} if isinstance(data, dict) and "payload" not in data else data

    @post_load
    def _to_submission(self, data: dict[str, Any], **_: Any) -> Submission:
        return Submission(**data)


class RawBody(Envelope):
    """An event sent with `raw=true`: any object, whatever its members."""

    def load(self, data: Any, **options: Any) -> Any:
        return Submission(data) if isinstance(data, dict) else super().load(data, **options)


_RAW_BODY = RawBody()


def _load_valid(data: Any) -> Submission | None:
    """Returns the submission, or None if it has an error. A test compares this with the schema."""
    if not isinstance(data, dict):
        return None
    if "payload" not in data:
        return Submission(data)
    payload, event_type = data["payload"], data.get("event_type")
    if not isinstance(payload, dict) or not _MEMBERS.issuperset(data):
        return None
    if event_type is not None and not (isinstance(event_type, str) and _is_event_type(event_type)):
        return None
    if "idempotency_key" not in data:
        return Submission(payload, event_type)
    key = data["idempotency_key"]
    is_key = isinstance(key, str) and 1 <= len(key) <= MAX_IDEMPOTENCY_KEY
    return Submission(payload, event_type, key) if is_key else None


# An event without an envelope: see Envelope._wrap_payload.
RAW_EVENT = {
    "type": "object",
    "description": "An object without the member `payload`, or with `raw=true` any object: it is the payload itself.",
    "not": {"required": ["payload"]},
}


class SendParameters(RequestSchema):
    event_type = EventType(metadata=doc("The type of events that have none in their envelope."))
    raw = Flag(
        load_default=False, metadata=doc("Store each event whole as its payload, even if it has a member `payload`.")
    )


class SendHeaders(RequestSchema):
    idempotency_key = HeaderText(
        data_key="Idempotency-Key",
        validate=length(1, MAX_IDEMPOTENCY_KEY),
        metadata=doc("Like the member `idempotency_key`. For a batch it applies to the whole batch.", "order-1001"),
    )


class StoredEvent(Schema):
    """An event without its payload."""

    id = UUID(required=True, metadata=example(EVENT_ID))
    event_type = String(required=True, allow_none=True, metadata=example(EVENT_TYPE))
    timestamp = Integer(required=True, metadata=doc("Epoch milliseconds.", STORED_MS))
    created_at = DateTime(required=True, metadata=example(STORED_AT))
    status = Choice(Status, required=True, metadata=example(Status.UNDELIVERED))
    deliveries = Integer(required=True, metadata=doc("Number of times a poll consumed or leased the event.", 0))


class PolledEvent(StoredEvent):
    payload = Dict(required=True, metadata=example(PAYLOAD))
    delivered_at = DateTime(
        metadata=doc("Only while the event is delivered. Missing if it was sent while `default` was disabled.")
    )
    receipt = String(metadata=doc("Only while the event is leased. Acknowledges, releases or extends the lease."))
    lease_expires_at = DateTime(metadata=doc("Only while the event is leased."))
