"""Schemas of inboxes."""

from marshmallow import Schema
from marshmallow.fields import Boolean, DateTime, List, String

from inbox.api.examples import STORED_AT
from inbox.api.schemas.fields import (
    Array,
    EventTypePattern,
    HeaderText,
    JSONFlag,
    RequestSchema,
    SmallBody,
    entries,
    one_of,
)

MAX_PATTERNS = 50


class InboxBody(SmallBody):
    may_be_missing = True

    event_types = Array(
        EventTypePattern(),
        load_default=None,
        allow_none=True,
        validate=entries(1, MAX_PATTERNS),
        metadata={
            "description": "Patterns, in which `*` matches any characters; without patterns, every event matches.",
            "examples": [["order.*"]],
        },
    )
    enabled = JSONFlag(
        metadata={"description": "Only for `default`, and required there: false turns it off, true turns it on."}
    )


class SaveInboxHeaders(RequestSchema):
    if_none_match = HeaderText(
        data_key="If-None-Match",
        validate=one_of(["*"]),
        metadata={"description": "Only create the inbox; 412 if it exists."},
    )


class NamedInbox(Schema):
    name = String(required=True, metadata={"examples": ["crm"]})
    event_types = List(String(), required=True, allow_none=True, metadata={"examples": [["order.*"]]})
    created_at = DateTime(required=True, metadata={"examples": [STORED_AT]})
    enabled = Boolean(metadata={"description": "Only for `default`: false while it is off."})
