"""The forms of requests and answers: they validate what comes in, and become the OpenAPI of what goes out."""

import re
from typing import Any

from marshmallow import Schema, ValidationError, post_load, pre_load
from marshmallow.fields import UUID, DateTime, Dict, Integer, List, Nested, String
from marshmallow.validate import Length, OneOf, Range, Regexp

from inbox.events import Order, Status
from inbox.ingest import Submission
from inbox.tenants import Scope

MAX_BATCH = 500
MAX_POLL = 500
DEFAULT_POLL = 100

_TYPE_FORM = Regexp(r"[A-Za-z0-9._:/-]{1,128}\Z", error="Has to be 1 to 128 of A-Z a-z 0-9 . _ : / - and nothing else.")
_TYPE_EXAMPLE = "order.created"


class Envelope(Schema):
    event_type = String(allow_none=True, validate=_TYPE_FORM, metadata={"example": _TYPE_EXAMPLE})
    payload = Dict(required=True, metadata={"description": "Any JSON object.", "example": {"order": 1001}})
    idempotency_key = String(
        validate=Length(1, 255), metadata={"description": "Makes a repeat of this event harmless."}
    )

    @pre_load(pass_collection=True)
    def _count(self, data: Any, *, many: bool, **_: Any) -> Any:
        if many and not (isinstance(data, list) and 1 <= len(data) <= MAX_BATCH):
            raise ValidationError(f"Has to be an array of 1 to {MAX_BATCH} events.")
        return data

    @pre_load
    def _take_whole(self, data: Any, **_: Any) -> Any:
        """An object without `payload` is itself the payload."""
        return {"payload": data} if isinstance(data, dict) and "payload" not in data else data

    @post_load
    def _submission(self, data: dict[str, Any], **_: Any) -> Submission:
        return Submission(**data)


# What a sender may put in the place of an envelope: see Envelope._take_whole.
RAW_EVENT = {
    "type": "object",
    "description": "An object without the member `payload` is taken whole as the payload.",
    "not": {"required": ["payload"]},
}


class SendParameters(Schema):
    event_type = String(
        validate=_TYPE_FORM,
        metadata={"description": "The type of events that bring none themselves.", "example": _TYPE_EXAMPLE},
    )


class HeaderText(String):
    """A header's value as UTF-8: WSGI hands it over as if it were Latin-1, and a body's member is not."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> str:
        try:
            return str(super()._deserialize(value, *args, **kwargs)).encode("latin-1").decode()
        except UnicodeError:
            raise ValidationError("Has to be UTF-8.") from None


class SendHeaders(Schema):
    idempotency_key = HeaderText(
        data_key="Idempotency-Key",
        validate=Length(1, 255),
        metadata={"description": "Does what the member `idempotency_key` does; on a batch, for all of it."},
    )


class WholeNumber(Integer):
    """Plain digits: what else Python takes for a number (1_0, ٣, +5) was meant as something else."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> int:
        if not re.fullmatch("[0-9]{1,9}", str(value), re.ASCII):
            raise self.make_error("invalid")
        return int(value)


class PollParameters(Schema):
    mode = String(
        load_default="consume",
        validate=OneOf(["consume", "peek"]),
        metadata={"description": "`consume` marks the events delivered, `peek` changes nothing."},
    )
    limit = WholeNumber(load_default=DEFAULT_POLL, validate=Range(1, MAX_POLL), metadata={"example": 100})
    order = String(
        load_default=Order.OLDEST,
        validate=OneOf([str(order) for order in Order]),
        metadata={"description": "`newest` turns the order round, with `mode=peek` only."},
    )

    @post_load
    def _order_is_for_peeking(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        if data["mode"] != "peek" and data["order"] != Order.OLDEST:
            raise ValidationError("Only mode=peek takes it.", "order")
        return data


class StoredEvent(Schema):
    """An event without its payload."""

    id = UUID(required=True)
    event_type = String(required=True, allow_none=True, metadata={"example": _TYPE_EXAMPLE})
    timestamp = Integer(required=True, metadata={"description": "Epoch milliseconds.", "example": 1732140249123})
    created_at = DateTime(required=True, metadata={"example": "2024-11-20T22:04:09.123Z"})
    status = String(required=True, validate=OneOf([str(status) for status in Status]))
    deliveries = Integer(required=True, metadata={"description": "How often it was handed out."})


class PolledEvent(StoredEvent):
    payload = Dict(required=True, metadata={"example": {"order": 1001}})
    delivered_at = DateTime(metadata={"description": "Only once it is delivered."})


class Caller(Schema):
    tenant_id = String(required=True)
    tenant_name = String(required=True)
    key_id = String(required=True)
    scopes = List(String(validate=OneOf([str(scope) for scope in Scope])), required=True)


class Health(Schema):
    status = String(required=True, metadata={"example": "ok"})


class ProblemFault(Schema):
    pointer = String(required=True, metadata={"example": "/3/payload"})
    detail = String(required=True)


class ProblemDocument(Schema):
    """RFC 9457."""

    type = String(required=True, metadata={"description": "A page that explains it.", "example": "/problems/not-json"})
    title = String(required=True)
    status = Integer(required=True)
    detail = String(required=True)
    request_id = String(required=True)
    errors = List(Nested(ProblemFault))
