"""How requests are read: bodies bounded and strict, parameters without repeats, faults with pointers."""

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from flask import Request
from gunicorn.http.errors import ParseException
from marshmallow import RAISE, Schema, ValidationError
from webargs.flaskparser import FlaskParser

from inbox import strict_json
from inbox.api.problem_catalogue import BAD_REQUEST, NOT_JSON, UNSUPPORTED_MEDIA_TYPE
from inbox.api.problems import Refusal
from inbox.api.services import services
from inbox.errors import EventTooLarge, Fault, InvalidRequest
from inbox.strict_json import NotJSON

# A batch may be as large as this many events of the largest size.
_LARGEST_EVENTS_IN_A_BATCH = 64


class StrictParser(FlaskParser):
    DEFAULT_UNKNOWN_BY_LOCATION: dict[str, str | None] = {  # noqa: RUF012 - as webargs declares it
        **FlaskParser.DEFAULT_UNKNOWN_BY_LOCATION,
        "query": RAISE,
    }

    def load_json(self, req: Request, schema: Schema) -> Any:
        if getattr(schema, "may_be_missing", False) and not _has_body(req):
            return {}
        limit = getattr(schema, "max_bytes", None) or _largest_with_events(schema)
        _refuse_other_media(req)
        try:
            return strict_json.parse(_read_at_most(req, limit))
        except NotJSON as error:
            raise Refusal(NOT_JSON, str(error)) from None

    def load_querystring(self, req: Request, schema: Schema) -> Any:
        repeated = [name for name, values in req.args.lists() if len(values) > 1]
        if repeated:
            raise InvalidRequest([Fault(_pointer("", name), "Given more than once.") for name in repeated])
        return super().load_querystring(req, schema)

    def handle_error(self, error: ValidationError, *_: Any, **__: Any) -> NoReturn:
        messages = error.messages
        # webargs files the messages under the part of the request that they are about.
        faults = [fault for part in messages.values() for fault in _faults(part)] if isinstance(messages, dict) else []
        raise InvalidRequest(faults) from None


def _largest_with_events(schema: Schema) -> int:
    return services().max_event_bytes * (_LARGEST_EVENTS_IN_A_BATCH if schema.many else 1)


def _has_body(req: Request) -> bool:
    return bool(req.content_length) or "Transfer-Encoding" in req.headers


def _refuse_other_media(req: Request) -> None:
    if not req.is_json:
        raise Refusal(UNSUPPORTED_MEDIA_TYPE, "The Content-Type has to be application/json.")
    if req.mimetype_params.get("charset", "utf-8").lower() not in ("utf-8", "utf8"):
        raise Refusal(UNSUPPORTED_MEDIA_TYPE, "The charset has to be UTF-8.")
    if (req.headers.get("Content-Encoding") or "identity").lower() != "identity":
        raise Refusal(UNSUPPORTED_MEDIA_TYPE, "A compressed body is not taken.")


def _read_at_most(req: Request, limit: int) -> bytes:
    # Read here and not by Flask: its MAX_CONTENT_LENGTH cuts a chunked body short in silence.
    if (req.content_length or 0) > limit:
        raise EventTooLarge(f"The body is larger than {limit} bytes.")
    body = bytearray()
    try:
        while len(body) <= limit and (piece := req.stream.read(limit + 1 - len(body))):
            body += piece
    except (OSError, ParseException):
        raise Refusal(BAD_REQUEST, "The body could not be read to its end.") from None
    if len(body) > limit:
        raise EventTooLarge(f"The body is larger than {limit} bytes.")
    # What came before the client hung up may well be JSON, and is still not what it meant to send.
    if req.content_length is not None and len(body) < req.content_length:
        raise Refusal(BAD_REQUEST, "The body is shorter than its Content-Length.")
    return bytes(body)


def _faults(messages: Any, pointer: str = "") -> Iterator[Fault]:
    if isinstance(messages, Mapping):
        for name, inner in messages.items():
            yield from _faults(inner, pointer if name == "_schema" else _pointer(pointer, name))
    else:
        for message in messages:
            yield Fault(pointer, message)


def _pointer(parent: str, name: object) -> str:
    return f"{parent}/{str(name)[:200].replace('~', '~0').replace('/', '~1')}"
