"""How bodies are read: of one media type, bounded, whole, and decompressed."""

import threading
import zlib
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING

from flask import Request, request
from gunicorn.http.errors import ParseException
from marshmallow import Schema

from inbox.api.problem_types import BAD_REQUEST, UNSUPPORTED_MEDIA_TYPE
from inbox.api.problems import Refusal
from inbox.api.services import services
from inbox.errors import EventTooLarge, Overloaded

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

LARGEST_EVENTS_IN_A_BATCH = 64
"""A batch may be as large as this many events of the largest size."""

_RESERVED_BYTES = "inbox.reserved_bytes"
_MAX_IGNORED_BYTES = 262_144
_GZIP = 31  # what zlib calls a window of 32 KiB with a gzip header and trailer
_STEP_BYTES = 65_536
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class ByteBudget:
    """Counts bytes that are reserved. Thread-safe, and never waits."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._reserved_bytes = 0
        self._mutex = threading.Lock()

    def reserve(self, size: int) -> None:
        """Raises Overloaded, and reserves nothing, if the limit would be exceeded."""
        with self._mutex:
            if self._reserved_bytes + size > self.limit_bytes:
                raise Overloaded
            self._reserved_bytes += size

    def release(self, size: int) -> None:
        with self._mutex:
            self._reserved_bytes -= size


def read_body(request: Request, schema: Schema) -> bytes | None:
    """Returns the body, up to the schema's limit. Returns None if it is missing and optional."""
    if getattr(schema, "may_be_missing", False) and not has_body(request.environ):
        return None
    limit = getattr(schema, "max_bytes", None) or _largest_with_events(schema)
    _refuse_other_media(request)
    is_compressed = _is_compressed(request)
    body = _read_at_most(request, limit)
    reserve = partial(_reserve, request.environ)
    # Reserved after the read: otherwise slow clients could use up the budget with bodies that they only announced.
    reserve(len(body))
    return _decompress(body, limit, reserve) if is_compressed else body


def release_budget(_error: BaseException | None = None) -> None:
    """Called at the end of every request, even a failed one: until then the body or its parsed form is in memory."""
    reserved_bytes = request.environ.pop(_RESERVED_BYTES, None)
    if reserved_bytes is not None:
        services().body_budget.release(reserved_bytes)


def check_ignored_body(request: Request) -> None:
    """Reads and drops the body of a call that takes none, so that a truncated request changes nothing."""
    if request.method not in _SAFE_METHODS and has_body(request.environ):
        _read_at_most(request, _MAX_IGNORED_BYTES)


def _reserve(environ: "WSGIEnvironment", size: int) -> None:
    services().body_budget.reserve(size)
    environ[_RESERVED_BYTES] = environ.get(_RESERVED_BYTES, 0) + size


def _largest_with_events(schema: Schema) -> int:
    return services().max_event_bytes * (LARGEST_EVENTS_IN_A_BATCH if schema.many else 1)


def has_body(environ: "WSGIEnvironment") -> bool:
    return bool(_content_length(environ)) or "HTTP_TRANSFER_ENCODING" in environ


def _content_length(environ: "WSGIEnvironment") -> int | None:
    """Returns None for a body in chunks. The server has refused values that are not numbers."""
    text = environ.get("CONTENT_LENGTH")
    return int(text) if text else None


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
    length = _content_length(request.environ)
    if (length or 0) > limit:
        raise EventTooLarge(f"The body is larger than {limit} bytes.")
    most = limit + 1 if length is None else length
    stream, body = request.stream if length is None else request.environ["wsgi.input"], b""
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


def _decompress(compressed: bytes, limit_bytes: int, reserve: Callable[[int], None]) -> bytes:
    """Returns what one gzip stream contains. `reserve` is told of each piece, and may raise.

    EventTooLarge as soon as there is one byte more than the limit.
    """
    stream, body = zlib.decompressobj(_GZIP), BytesIO()
    for start in range(0, len(compressed), _STEP_BYTES):
        rest = compressed[start : start + _STEP_BYTES]
        while rest and not stream.eof:
            try:
                piece = stream.decompress(rest, min(_STEP_BYTES, limit_bytes + 1 - body.tell()))
            except zlib.error:
                raise Refusal(BAD_REQUEST, "The Content-Encoding is gzip, but the body is not valid gzip.") from None
            reserve(len(piece))
            body.write(piece)
            if body.tell() > limit_bytes:
                raise EventTooLarge(f"The decompressed body is larger than {limit_bytes} bytes.")
            rest = stream.unconsumed_tail
        if stream.eof:
            # Not a second stream either: a body of a million empty ones would take seconds.
            if stream.unused_data or start + _STEP_BYTES < len(compressed):
                raise Refusal(BAD_REQUEST, "The body goes on after the end of its gzip stream. Send a single stream.")
            return body.getvalue()
    raise Refusal(BAD_REQUEST, "The gzip stream in the body is incomplete.")
