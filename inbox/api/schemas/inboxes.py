"""Schemas of inboxes."""

from marshmallow import Schema
from marshmallow.fields import Boolean, DateTime, List, String
from marshmallow.validate import OneOf

from inbox.api.examples import STORED_AT, doc, example
from inbox.api.schemas import fields

MAX_PATTERNS = 50


class InboxBody(fields.SmallBody):
    may_be_missing = True

    event_types = fields.Array(
        fields.PatternText(
            "[A-Za-z0-9._:/*-]{1,128}",
            "must be 1 to 128 characters of A-Z a-z 0-9 . _ : / - *",
            metadata=example("order.*"),
        ),
        load_default=None,
        allow_none=True,
        validate=fields.entries(1, MAX_PATTERNS),
        metadata=doc(
            "Patterns, in which `*` matches any characters; without patterns, every event matches.", ["order.*"]
        ),
    )
    enabled = fields.JSONFlag(
        metadata=doc("Only for `default`, and required there: false disables it, true enables it.")
    )


class SaveInboxHeaders(fields.RequestSchema):
    if_none_match = fields.HeaderText(
        data_key="If-None-Match",
        validate=OneOf(["*"], error="must be `*`"),
        metadata=doc("Only create the inbox; 412 if it exists."),
    )


class NamedInbox(Schema):
    name = String(required=True, metadata=example("crm"))
    event_types = List(String(), required=True, allow_none=True, metadata=example(["order.*"]))
    created_at = DateTime(required=True, metadata=example(STORED_AT))
    enabled = Boolean(metadata=doc("Only for `default`: false while it is disabled."))
