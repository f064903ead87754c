"""Schemas of the current API key and of health checks."""

from marshmallow import Schema
from marshmallow.fields import List, String

from inbox.api.examples import KEY_ID, example
from inbox.api.schemas.fields import Choice
from inbox.domain.keys import DEFAULT_SCOPES, Scope


class Caller(Schema):
    tenant_id = String(required=True, metadata=example("acme"))
    tenant_name = String(required=True, metadata=example("Acme Corp."))
    key_id = String(required=True, metadata=example(KEY_ID))
    scopes = List(Choice(Scope), required=True, metadata=example(sorted(DEFAULT_SCOPES)))


class Health(Schema):
    status = String(required=True, metadata=example("ok"))
