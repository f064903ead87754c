"""Schemas of listing, replaying and erasing events."""

from typing import Any

from marshmallow import Schema, post_load
from marshmallow.fields import Boolean, Integer

from inbox.api.examples import CURSOR, DELIVERED_AT
from inbox.api.schemas.fields import (
    LIMIT,
    Choice,
    EventType,
    InboxName,
    RequestSchema,
    SmallBody,
    Text,
    Timestamp,
    WholeNumber,
    between,
    one_of,
)
from inbox.domain.events import Order, Selection, Status

MAX_LISTED = 500
DEFAULT_LISTED = 100
_REPLAYABLE = (Status.DELIVERED, Status.DEAD)


class InboxParameter(RequestSchema):
    inbox = InboxName()


class _Selection(RequestSchema):
    inbox = InboxName()
    event_type = EventType(metadata={"description": "Only events of exactly this type."})
    since_ms = Timestamp("Only events since this time, inclusive.", data_key="since")
    until_ms = Timestamp("Only events before this time.", DELIVERED_AT, data_key="until")


class ListParameters(_Selection):
    status = Choice(Status, metadata={"description": "Only events with this status now."})
    order = Choice(Order, load_default=Order.NEWEST)
    limit = WholeNumber(load_default=DEFAULT_LISTED, validate=between(1, MAX_LISTED), metadata=LIMIT)
    cursor = Text(metadata={"description": "From the header `Link` of the previous page.", "examples": [CURSOR]})


class ReplayBody(SmallBody, _Selection):
    status = Text(validate=one_of(_REPLAYABLE), metadata={"examples": [str(Status.DELIVERED)]})

    @post_load
    def _to_selection(self, data: dict[str, Any], **_: Any) -> Selection:
        status = data.pop("status", None)
        return Selection(**data, status=None if status is None else Status(status))


class ReplayedAnswer(Schema):
    replayed = Integer(
        required=True, metadata={"description": "Number of events that are undelivered again.", "examples": [1000]}
    )
    more = Boolean(
        required=True, metadata={"description": "True if there are more: repeat the request.", "examples": [True]}
    )
