"""Schemas of API keys."""

from marshmallow import Schema
from marshmallow.fields import DateTime, List, String

from inbox.api.examples import DELIVERED_AT, KEY_ID, STORED_AT, doc, example
from inbox.api.schemas.fields import Array, Choice, JSONWholeNumber, Name, SmallBody, Timestamp, between, entries
from inbox.domain.keys import DEFAULT_SCOPES, MAX_OVERLAP_SECONDS, KeyStatus, Scope

DEFAULT_OVERLAP_SECONDS = 86_400
_SCOPES = [Scope.INBOX_READ]
_EXPIRES_AT = "2100-01-01T00:00:00.000Z"


class KeyBody(SmallBody):
    may_be_missing = True

    name = Name(load_default="", metadata=doc("What the key is for.", "zapier"))
    scopes = Array(
        Choice(Scope),
        load_default=lambda: sorted(DEFAULT_SCOPES),
        validate=entries(1, len(Scope)),
        metadata=doc("What the key allows. By default it can send and poll.", _SCOPES),
    )
    expires_at_ms = Timestamp("When the key expires.", _EXPIRES_AT, data_key="expires_at", allow_none=True)


class RotateBody(SmallBody):
    may_be_missing = True

    overlap_seconds = JSONWholeNumber(
        load_default=DEFAULT_OVERLAP_SECONDS,
        validate=between(0, MAX_OVERLAP_SECONDS),
        metadata=doc("How long the old key keeps working.", 3600),
    )


class AboutKey(Schema):
    """A key's data, without the key."""

    key_id = String(required=True, metadata=example(KEY_ID))
    name = String(required=True, metadata=example("zapier"))
    hint = String(required=True, allow_none=True, metadata=doc("The end of the key.", "ibx_…x7Qf"))
    scopes = List(Choice(Scope), required=True, metadata=example(_SCOPES))
    status = Choice(KeyStatus, required=True, metadata=example(KeyStatus.ACTIVE))
    created_at = DateTime(required=True, metadata=example(STORED_AT))
    last_used_at = DateTime(required=True, allow_none=True, metadata=doc("Accurate to the hour.", DELIVERED_AT))
    expires_at = DateTime(required=True, allow_none=True, metadata=example(_EXPIRES_AT))


class CreatedKey(AboutKey):
    last_used_at = DateTime(required=True, allow_none=True, metadata=example(None))
    key = String(required=True, metadata=doc("The key. It cannot be shown again.", "ibx_…"))
