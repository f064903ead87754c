"""The forms of keys."""

from marshmallow import Schema
from marshmallow.fields import DateTime, Enum, List, String
from marshmallow.validate import Length, OneOf, Range

from inbox.api.fields import TIME_EXAMPLE, JSONWholeNumber, Moment, Name, SmallBody
from inbox.tenants import DEFAULT_SCOPES, MAX_OVERLAP_SECONDS, KeyStatus, Scope

DEFAULT_OVERLAP_SECONDS = 86_400


class KeyBody(SmallBody):
    may_be_missing = True

    name = Name(load_default="", metadata={"description": "What it is for."})
    scopes = List(
        Enum(Scope, by_value=True),
        load_default=lambda: sorted(DEFAULT_SCOPES),
        validate=Length(1, len(Scope)),
        metadata={"description": "What it may do; without them it may send and poll.", "example": ["inbox:read"]},
    )
    expires_at_ms = Moment(
        "From when on it no longer works.", "2100-01-01T00:00:00Z", data_key="expires_at", allow_none=True
    )


class RotateBody(SmallBody):
    may_be_missing = True

    overlap_seconds = JSONWholeNumber(
        load_default=DEFAULT_OVERLAP_SECONDS,
        validate=Range(0, MAX_OVERLAP_SECONDS),
        metadata={"description": "For how long the old key goes on working."},
    )


class AboutKey(Schema):
    """What is known of a key; the key itself is not."""

    key_id = String(required=True, metadata={"example": "key_187ac454abf1e7d6"})
    name = String(required=True)
    hint = String(required=True, allow_none=True, metadata={"description": "How it ends.", "example": "ibx_…x7Qf"})
    scopes = List(String(validate=OneOf([str(scope) for scope in Scope])), required=True)
    status = String(required=True, validate=OneOf([str(status) for status in KeyStatus]))
    created_at = DateTime(required=True, metadata={"example": TIME_EXAMPLE})
    last_used_at = DateTime(
        required=True, allow_none=True, metadata={"description": "To the hour.", "example": TIME_EXAMPLE}
    )
    expires_at = DateTime(required=True, allow_none=True, metadata={"example": TIME_EXAMPLE})


class CreatedKey(AboutKey):
    key = String(required=True, metadata={"description": "The key, shown this once.", "example": "ibx_…"})
