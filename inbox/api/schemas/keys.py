"""The forms of keys."""

from marshmallow import Schema
from marshmallow.fields import DateTime, Enum, List, String
from marshmallow.validate import Length, OneOf, Range

from inbox.api.examples import HANDED_OUT_AT, KEY_ID, STORED_AT
from inbox.api.schemas.fields import JSONWholeNumber, Moment, Name, SmallBody
from inbox.domain.keys import DEFAULT_SCOPES, MAX_OVERLAP_SECONDS, KeyStatus, Scope

DEFAULT_OVERLAP_SECONDS = 86_400
_SCOPES = [str(Scope.INBOX_READ)]
_LAST_MOMENT = "2100-01-01T00:00:00.000Z"


class KeyBody(SmallBody):
    may_be_missing = True

    name = Name(load_default="", metadata={"description": "What it is for.", "examples": ["zapier"]})
    scopes = List(
        Enum(Scope, by_value=String),
        load_default=lambda: sorted(DEFAULT_SCOPES),
        validate=Length(1, len(Scope)),
        metadata={"description": "What it may do; without them it may send and poll.", "examples": [_SCOPES]},
    )
    expires_at_ms = Moment("From when on it no longer works.", _LAST_MOMENT, data_key="expires_at", allow_none=True)


class RotateBody(SmallBody):
    may_be_missing = True

    overlap_seconds = JSONWholeNumber(
        load_default=DEFAULT_OVERLAP_SECONDS,
        validate=Range(0, MAX_OVERLAP_SECONDS),
        metadata={"description": "For how long the old key goes on working.", "examples": [3600]},
    )


class AboutKey(Schema):
    """What is known of a key; the key itself is not."""

    key_id = String(required=True, metadata={"examples": [KEY_ID]})
    name = String(required=True, metadata={"examples": ["zapier"]})
    hint = String(required=True, allow_none=True, metadata={"description": "How it ends.", "examples": ["ibx_…x7Qf"]})
    scopes = List(
        String(validate=OneOf([str(scope) for scope in Scope])), required=True, metadata={"examples": [_SCOPES]}
    )
    status = String(
        required=True,
        validate=OneOf([str(status) for status in KeyStatus]),
        metadata={"examples": [str(KeyStatus.ACTIVE)]},
    )
    created_at = DateTime(required=True, metadata={"examples": [STORED_AT]})
    last_used_at = DateTime(
        required=True, allow_none=True, metadata={"description": "To the hour.", "examples": [HANDED_OUT_AT]}
    )
    expires_at = DateTime(required=True, allow_none=True, metadata={"examples": [_LAST_MOMENT]})


class CreatedKey(AboutKey):
    last_used_at = DateTime(required=True, allow_none=True, metadata={"examples": [None]})
    key = String(required=True, metadata={"description": "The key, shown this once.", "examples": ["ibx_…"]})
