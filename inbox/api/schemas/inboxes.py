"""The forms of inboxes."""

from marshmallow import Schema
from marshmallow.fields import Boolean, DateTime, List, String
from marshmallow.validate import Length, OneOf

from inbox.api.examples import STORED_AT
from inbox.api.schemas.fields import EventTypePattern, HeaderText, JSONFlag, SmallBody

MAX_PATTERNS = 50


class InboxBody(SmallBody):
    may_be_missing = True

    event_types = List(
        EventTypePattern(),
        load_default=None,
        allow_none=True,
        validate=Length(1, MAX_PATTERNS),
        metadata={
            "description": "Patterns, in which `*` stands for any characters; without them it takes every event.",
            "examples": [["order.*"]],
        },
    )
    enabled = JSONFlag(
        metadata={"description": "Only for `default`, and required there: false turns it off, true turns it on again."}
    )


class SaveInboxHeaders(Schema):
    if_none_match = HeaderText(
        data_key="If-None-Match",
        validate=OneOf(["*"]),
        metadata={"description": "Only create the inbox: 412 if it exists."},
    )


class NamedInbox(Schema):
    name = String(required=True, metadata={"examples": ["crm"]})
    event_types = List(String(), required=True, allow_none=True, metadata={"examples": [["order.*"]]})
    created_at = DateTime(required=True, metadata={"examples": [STORED_AT]})
    enabled = Boolean(metadata={"description": "Only for `default`: false while it is off."})
