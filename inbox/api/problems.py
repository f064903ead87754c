"""The one place where errors become answers (RFC 9457)."""

import traceback
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import orjson
import structlog
from flask import Flask, Response
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from inbox import errors
from inbox.api.access_log import request_id
from inbox.api.problem_types import (
    ALREADY_EXISTS,
    BAD_REQUEST,
    EMAIL_TAKEN,
    EVENT_LEASED,
    IDEMPOTENCY_CONFLICT,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_ALLOWED,
    NOT_ALLOWED,
    NOT_FOUND,
    OVERLOADED,
    PRECONDITION_FAILED,
    RATE_LIMITED,
    TOO_LARGE,
    TOO_MANY_FAILURES,
    TOO_MANY_INBOXES,
    TOO_MANY_KEYS,
    UNAUTHORIZED,
    UNAVAILABLE,
    UNSUPPORTED_MEDIA_TYPE,
    WRONG_STEP,
    Problem,
)
from inbox.errors import FieldError, InboxError

CONTENT_TYPE = "application/problem+json"
_SHOWN_FIELD_ERRORS = 20
# Bearer alone: a Basic challenge would make browsers ask for a password over the console.
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="Polling Inbox"'}
_log = structlog.get_logger()


_OF_ERROR: Mapping[type[InboxError], Problem] = {
    errors.InvalidRequest: INVALID_REQUEST,
    errors.EventTooLarge: TOO_LARGE,
    errors.IdempotencyConflict: IDEMPOTENCY_CONFLICT,
    errors.NotFound: NOT_FOUND,
    errors.TenantExists: ALREADY_EXISTS,
    errors.EmailTaken: EMAIL_TAKEN,
    errors.NotAllowed: NOT_ALLOWED,
    errors.InvalidStatusTransition: WRONG_STEP,
    errors.TooManyKeys: TOO_MANY_KEYS,
    errors.Unauthenticated: UNAUTHORIZED,
    errors.TooManyFailures: TOO_MANY_FAILURES,
    errors.RateLimited: RATE_LIMITED,
    errors.EventLeased: EVENT_LEASED,
    errors.TooManyInboxes: TOO_MANY_INBOXES,
    errors.InboxExists: PRECONDITION_FAILED,
    errors.InboxClosing: UNAVAILABLE,
    errors.Overloaded: OVERLOADED,
    errors.StoreUnavailable: UNAVAILABLE,
    errors.StoreFull: UNAVAILABLE,
}

_OF_STATUS = {
    problem.status: problem
    for problem in (
        BAD_REQUEST,
        NOT_FOUND,
        METHOD_NOT_ALLOWED,
        TOO_LARGE,
        UNSUPPORTED_MEDIA_TYPE,
        INTERNAL_ERROR,
    )
}


class Refusal(Exception):
    """Raised within the API where a request is refused for a reason that only HTTP knows."""

    def __init__(self, problem: Problem, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail
        self.headers = headers or {}


def install(app: Flask) -> None:
    app.register_error_handler(Refusal, lambda refusal: _answer(refusal.problem, refusal.detail, refusal.headers))
    app.register_error_handler(InboxError, _on_inbox_error)
    app.register_error_handler(HTTPException, _on_http_exception)
    app.register_error_handler(Exception, _on_bug)


def _on_inbox_error(error: InboxError) -> Response:
    problem = _OF_ERROR.get(type(error))
    if problem is None:
        return _on_bug(error)
    if problem is UNAVAILABLE:
        # The cause is for the operator.
        _log.warning("unavailable", cause=str(error), request_id=request_id())
        return _answer(problem, problem.meaning, {"Retry-After": "1"})
    return _answer(problem, str(error), _headers(error), getattr(error, "field_errors", ()))


def _headers(error: InboxError) -> dict[str, str]:
    match error:
        case errors.Unauthenticated():
            return _CHALLENGE
        case errors.TooManyFailures() | errors.RateLimited():
            return {"Retry-After": str(ceil(error.wait_seconds))}
        case errors.Overloaded():
            return {"Retry-After": "1"}
        case _:
            return {}


def _on_http_exception(error: HTTPException) -> Response:
    problem = _OF_STATUS.get(error.code or 500, BAD_REQUEST)
    allow = error.valid_methods if isinstance(error, MethodNotAllowed) else None
    return _answer(problem, problem.meaning, {"Allow": ", ".join(sorted(allow))} if allow else {})


def log_bug(error: BaseException, request_id: str | None = None) -> None:
    # The frames without the message: a message may quote what was sent.
    frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    _log.error("bug", error=type(error).__name__, frames=frames, request_id=request_id)


def _on_bug(error: Exception) -> Response:
    log_bug(error, request_id())
    return _answer(INTERNAL_ERROR, INTERNAL_ERROR.meaning)


def _answer(
    problem: Problem, detail: str, headers: Mapping[str, str] | None = None, field_errors: Sequence[FieldError] = ()
) -> Response:
    body = problem_document(problem, detail, request_id(), field_errors)
    return Response(body, problem.status, headers, content_type=CONTENT_TYPE)


def problem_document(problem: Problem, detail: str, request_id: str, field_errors: Sequence[FieldError] = ()) -> bytes:
    document: dict[str, Any] = {
        "type": problem.path,
        "title": problem.title,
        "status": problem.status,
        "detail": detail,
        "request_id": request_id,
    }
    if field_errors:
        document["errors"] = [
            {"pointer": each.pointer, "detail": each.detail} for each in field_errors[:_SHOWN_FIELD_ERRORS]
        ]
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
