"""How bodies are read: of one media type, bounded, whole, and decompressed."""

from flask import Request, g
from gunicorn.http.errors import ParseException
from marshmallow import Schema

from inbox.api.compression import decompress
from inbox.api.problem_catalogue import BAD_REQUEST, UNSUPPORTED_MEDIA_TYPE
from inbox.api.problems import Refusal
from inbox.api.services import services
from inbox.errors import EventTooLarge

LARGEST_EVENTS_IN_A_BATCH = 64
"""A batch may be as large as this many events of the largest size."""

_MAX_IGNORED_BYTES = 262_144
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def read_body(request: Request, schema: Schema) -> bytes | None:
    """The body, within the schema's limit; None where there is none and none is needed."""
    if getattr(schema, "may_be_missing", False) and not _has_body(request):
        return None
    limit = getattr(schema, "max_bytes", None) or _largest_with_events(schema)
    _refuse_other_media(request)
    is_compressed = _is_compressed(request)
    body = _read_at_most(request, limit)
    # Reserved after the read: otherwise slow clients could use up the budget with bodies that they only announced.
    _reserve(len(body))
    return decompress(body, limit, _reserve) if is_compressed else body


def release_budget(_error: BaseException | None = None) -> None:
    """Called at the end of every request, even a failed one: until then the body or its parsed form is in memory."""
    if "reserved_bytes" in g:
        services().body_budget.release(g.pop("reserved_bytes"))


def check_ignored_body(request: Request) -> None:
    """Reads and drops the body of a call that takes none, so that a truncated request changes nothing."""
    if request.method not in _SAFE_METHODS and _has_body(request):
        _read_at_most(request, _MAX_IGNORED_BYTES)


def _reserve(size: int) -> None:
    services().body_budget.reserve(size)
    g.reserved_bytes = g.get("reserved_bytes", 0) + size


def _largest_with_events(schema: Schema) -> int:
    return services().max_event_bytes * (LARGEST_EVENTS_IN_A_BATCH if schema.many else 1)


def _has_body(request: Request) -> bool:
    return bool(request.content_length) or "Transfer-Encoding" in request.headers


def _refuse_other_media(request: Request) -> None:
    environ = request.environ
    if environ.get("CONTENT_TYPE") != "application/json":
        if not request.is_json:
            raise Refusal(UNSUPPORTED_MEDIA_TYPE, "The Content-Type has to be application/json.")
        if request.mimetype_params.get("charset", "utf-8").lower() not in ("utf-8", "utf8"):
            raise Refusal(UNSUPPORTED_MEDIA_TYPE, "The charset has to be UTF-8.")


def _is_compressed(request: Request) -> bool:
    coding = request.environ.get("HTTP_CONTENT_ENCODING", "").lower()
    # RFC 9110 asks recipients to treat x-gzip as gzip.
    if coding in ("gzip", "x-gzip"):
        return True
    if coding not in ("", "identity"):
        # With this header a 415 is about the coding, and without it about the media type.
        supported = {"Accept-Encoding": "gzip"}
        raise Refusal(UNSUPPORTED_MEDIA_TYPE, "The Content-Encoding has to be gzip, or left out.", supported)
    return False


def _read_at_most(request: Request, limit: int) -> bytes:
    # Read here and not by Flask: its MAX_CONTENT_LENGTH cuts a chunked body short in silence.
    length = request.content_length
    if (length or 0) > limit:
        raise EventTooLarge(f"The body is larger than {limit} bytes.")
    most = limit + 1 if length is None else length
    stream, body = request.stream, b""
    try:
        while len(body) < most and (piece := stream.read(most - len(body))):
            body += piece
    except (OSError, ParseException):
        raise Refusal(BAD_REQUEST, "The body could not be read to its end.") from None
    if len(body) > limit:
        raise EventTooLarge(f"The body is larger than {limit} bytes.")
    # What came before the client hung up may well be JSON, and is still not what it meant to send.
    if length is not None and len(body) < length:
        raise Refusal(BAD_REQUEST, "The body is shorter than its Content-Length.")
    return body
