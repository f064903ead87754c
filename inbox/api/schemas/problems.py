"""Schemas of problem documents."""

from marshmallow import Schema
from marshmallow.fields import Integer, List, Nested, String

from inbox.api.examples import doc, example


class ProblemFieldError(Schema):
    pointer = String(required=True, metadata=example("/3/payload"))
    detail = String(required=True)


class ProblemDocument(Schema):
    """RFC 9457."""

    type = String(required=True, metadata=doc("The path of a page about the problem.", "/problems/not-json"))
    title = String(required=True)
    status = Integer(required=True)
    detail = String(required=True)
    request_id = String(required=True)
    errors = List(Nested(ProblemFieldError))
