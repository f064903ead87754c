"""The forms of looking back."""

from typing import Any

from marshmallow import Schema, post_load
from marshmallow.fields import Boolean, Enum, Integer, String
from marshmallow.validate import OneOf, Range

from inbox.api.examples import CURSOR, HANDED_OUT_AT
from inbox.api.schemas.fields import AT_MOST, EventType, InboxName, Moment, SmallBody, WholeNumber
from inbox.domain.events import Order, Selection, Status

MAX_LISTED = 500
DEFAULT_LISTED = 100
_REPLAYABLE = [str(Status.DELIVERED), str(Status.DEAD)]


class InboxParameter(Schema):
    inbox = InboxName()


class _Selecting(Schema):
    inbox = InboxName()
    event_type = EventType(metadata={"description": "Exactly this type."})
    since_ms = Moment("From this time on.", data_key="since")
    until_ms = Moment("Before this time.", HANDED_OUT_AT, data_key="until")


class ListParameters(_Selecting):
    status = Enum(Status, by_value=String, metadata={"description": "Those in it now."})
    order = Enum(Order, by_value=String, load_default=Order.NEWEST)
    limit = WholeNumber(load_default=DEFAULT_LISTED, validate=Range(1, MAX_LISTED), metadata=AT_MOST)
    cursor = String(metadata={"description": "Out of the header Link of the answer before.", "examples": [CURSOR]})


class ReplayBody(SmallBody, _Selecting):
    status = String(validate=OneOf(_REPLAYABLE), metadata={"examples": [str(Status.DELIVERED)]})

    @post_load
    def _selection(self, data: dict[str, Any], **_: Any) -> Selection:
        status = data.pop("status", None)
        return Selection(**data, status=None if status is None else Status(status))


class ReplayedAnswer(Schema):
    replayed = Integer(
        required=True, metadata={"description": "How many events are undelivered again.", "examples": [1000]}
    )
    more = Boolean(
        required=True, metadata={"description": "Whether there are more: repeat the call.", "examples": [True]}
    )
