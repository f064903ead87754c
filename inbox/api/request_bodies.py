"""Reads request bodies: JSON only, up to a limit, complete, and decompressed."""

import threading
import zlib
from collections.abc import Callable
from functools import partial
from io import BytesIO
from wsgiref.types import WSGIEnvironment

from flask import Request, request
from gunicorn.http.errors import ParseException

from inbox.api.problem_types import BAD_REQUEST, UNSUPPORTED_MEDIA_TYPE
from inbox.api.problems import ProblemError
from inbox.api.responses import GZIP
from inbox.api.schemas.fields import RequestSchema
from inbox.api.services import services
from inbox.errors import EventTooLarge, Overloaded

MAX_BATCH_SIZE_IN_EVENTS = 64
"""A batch can have the size of this many events of the maximum size."""

_RESERVED_BYTES = "inbox.reserved_bytes"
_MAX_IGNORED_BYTES = 262_144
_STEP_BYTES = 65_536
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class ByteBudget:
    """Limits the bytes that the threads of a process hold in memory at the same time. Thread-safe, never blocks."""

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


def read_body(request: Request, schema: RequestSchema) -> bytes | None:
    """Returns the decompressed body, or None if it is missing and optional.

    Raises EventTooLarge above the schema's limit, Overloaded above the process's budget, and ProblemError if the body
    is cut off, is not gzip as announced, or has another media type or coding.
    """
    if schema.may_be_missing and not has_body(request.environ):
        return None
    size_in_events = MAX_BATCH_SIZE_IN_EVENTS if schema.many else 1
    limit_bytes = schema.max_bytes or size_in_events * services().max_event_bytes
    _check_media_type(request)
    is_compressed = _is_compressed(request)
    body = _read_up_to(request, limit_bytes)
    reserve = partial(_reserve, request.environ)
    # Reserved after the read: otherwise slow clients could use up the budget with bodies that they never send.
    reserve(len(body))
    return _decompress(body, limit_bytes, reserve) if is_compressed else body


def release_budget(_error: BaseException | None = None) -> None:
    """Returns the request's bytes to the budget at its end: until then the body or its parsed form is in memory."""
    reserved_bytes = request.environ.pop(_RESERVED_BYTES, None)
    if reserved_bytes is not None:
        services().body_budget.release(reserved_bytes)


def check_ignored_body(request: Request) -> None:
    """Reads and drops the body of a request that needs none, so that a truncated request changes nothing."""
    if request.method not in _SAFE_METHODS and has_body(request.environ):
        _read_up_to(request, _MAX_IGNORED_BYTES)


def _reserve(environ: WSGIEnvironment, size: int) -> None:
    services().body_budget.reserve(size)
    environ[_RESERVED_BYTES] = environ.get(_RESERVED_BYTES, 0) + size


def has_body(environ: WSGIEnvironment) -> bool:
    return bool(_content_length(environ)) or "HTTP_TRANSFER_ENCODING" in environ


def _content_length(environ: WSGIEnvironment) -> int | None:
    """Returns None for a chunked or missing body. The server has rejected values that are not numbers."""
    text = environ.get("CONTENT_LENGTH")
    return int(text) if text else None


def _check_media_type(request: Request) -> None:
    environ = request.environ
    if environ.get("CONTENT_TYPE") != "application/json":
        if not request.is_json:
            raise ProblemError(UNSUPPORTED_MEDIA_TYPE, "The Content-Type must be application/json.")
        if request.mimetype_params.get("charset", "utf-8").lower() not in ("utf-8", "utf8"):
            raise ProblemError(UNSUPPORTED_MEDIA_TYPE, "The charset must be UTF-8.")


def _is_compressed(request: Request) -> bool:
    coding = request.environ.get("HTTP_CONTENT_ENCODING", "").lower()
    # RFC 9110 asks recipients to treat x-gzip as gzip.
    if coding in ("gzip", "x-gzip"):
        return True
    if coding not in ("", "identity"):
        # This header shows that the coding caused the 415, not the media type (RFC 9110, 12.5.3).
        supported = {"Accept-Encoding": "gzip"}
        raise ProblemError(UNSUPPORTED_MEDIA_TYPE, "The Content-Encoding must be gzip, or be omitted.", supported)
    return False


def _read_up_to(request: Request, limit_bytes: int) -> bytes:
    # Not read by Flask: its MAX_CONTENT_LENGTH silently truncates a chunked body.
    length = _content_length(request.environ)
    if (length or 0) > limit_bytes:
        raise EventTooLarge(f"The body is larger than {limit_bytes} bytes.")
    max_bytes = limit_bytes + 1 if length is None else length
    stream, body = request.stream if length is None else request.environ["wsgi.input"], b""
    try:
        while len(body) < max_bytes and (piece := stream.read(max_bytes - len(body))):
            body += piece
    except (OSError, ParseException):
        raise ProblemError(BAD_REQUEST, "The body was cut off.") from None
    if len(body) > limit_bytes:
        raise EventTooLarge(f"The body is larger than {limit_bytes} bytes.")
    # The part that arrived could be valid JSON.
    if length is not None and len(body) < length:
        raise ProblemError(BAD_REQUEST, "The body is shorter than its Content-Length.")
    return body


def _decompress(compressed: bytes, limit_bytes: int, reserve: Callable[[int], None]) -> bytes:
    """Returns the content of one gzip stream. Calls `reserve` with the size of each piece before keeping it.

    Raises EventTooLarge at the first byte beyond the limit.
    """
    stream, body = zlib.decompressobj(GZIP), BytesIO()
    for start in range(0, len(compressed), _STEP_BYTES):
        rest = compressed[start : start + _STEP_BYTES]
        while rest and not stream.eof:
            try:
                piece = stream.decompress(rest, min(_STEP_BYTES, limit_bytes + 1 - body.tell()))
            except zlib.error:
                raise ProblemError(
                    BAD_REQUEST, "The Content-Encoding is gzip, but the body is not valid gzip."
                ) from None
            reserve(len(piece))
            body.write(piece)
            if body.tell() > limit_bytes:
                raise EventTooLarge(f"The decompressed body is larger than {limit_bytes} bytes.")
            rest = stream.unconsumed_tail
        if stream.eof:
            # No second stream either: a million empty ones would take seconds.
            if stream.unused_data or start + _STEP_BYTES < len(compressed):
                raise ProblemError(
                    BAD_REQUEST, "The body continues after the end of its gzip stream. Send a single stream."
                )
            return body.getvalue()
    raise ProblemError(BAD_REQUEST, "The gzip stream in the body is incomplete.")
