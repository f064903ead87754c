"""Schemas of listing, replaying and erasing events."""

from typing import Any

from marshmallow import Schema, post_load
from marshmallow.fields import Boolean, Integer

from inbox.api.examples import CURSOR, DELIVERED_AT, doc, example
from inbox.api.schemas import fields
from inbox.domain.events import Order, Selection, Status

MAX_LISTED = 500
DEFAULT_LISTED = 100
_REPLAYABLE = (Status.DELIVERED, Status.DEAD)


class InboxParameter(fields.RequestSchema):
    inbox = fields.InboxName()


class _Selection(fields.RequestSchema):
    inbox = fields.InboxName()
    event_type = fields.EventType(metadata=doc("Only events of exactly this type."))
    since_ms = fields.Timestamp("Only events since this time, inclusive.", data_key="since")
    until_ms = fields.Timestamp("Only events before this time.", DELIVERED_AT, data_key="until")


class ListParameters(_Selection):
    status = fields.Choice(Status, metadata=doc("Only events with this status now."))
    order = fields.Choice(Order, load_default=Order.NEWEST)
    limit = fields.WholeNumber(
        load_default=DEFAULT_LISTED, validate=fields.between(1, MAX_LISTED), metadata=fields.LIMIT
    )
    cursor = fields.Text(metadata=doc("From the header `Link` of the previous page.", CURSOR))


class ReplayBody(fields.SmallBody, _Selection):
    status = fields.Text(validate=fields.one_of(_REPLAYABLE), metadata=example(Status.DELIVERED))

    @post_load
    def _to_selection(self, data: dict[str, Any], **_: Any) -> Selection:
        status = data.pop("status", None)
        return Selection(**data, status=None if status is None else Status(status))


class ReplayedAnswer(Schema):
    replayed = Integer(required=True, metadata=doc("Number of events that are undelivered again.", 1000))
    more = Boolean(required=True, metadata=doc("True if there are more: repeat the request.", True))
