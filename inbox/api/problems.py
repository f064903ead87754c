"""Turns errors into problem documents (RFC 9457). inbox/api/problem_types.py has their texts."""

import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import structlog
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from inbox import errors
from inbox.api import problem_types
from inbox.api.access_log import request_id
from inbox.api.problem_types import Problem
from inbox.domain.exact_json import NotJSON
from inbox.errors import FieldError, InboxError

CONTENT_TYPE = "application/problem+json"
_MAX_FIELD_ERRORS = 20
# Bearer alone: a Basic challenge would make browsers ask for a password on top of the console.
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="Polling Inbox"'}
_log = structlog.get_logger()

_BY_ERROR: Mapping[type[InboxError], Problem] = {
    errors.InvalidRequest: problem_types.INVALID_REQUEST,
    errors.EventTooLarge: problem_types.TOO_LARGE,
    errors.IdempotencyConflict: problem_types.IDEMPOTENCY_CONFLICT,
    errors.NotFound: problem_types.NOT_FOUND,
    errors.TenantExists: problem_types.ALREADY_EXISTS,
    errors.EmailTaken: problem_types.EMAIL_TAKEN,
    errors.NotAllowed: problem_types.NOT_ALLOWED,
    errors.InvalidStatusTransition: problem_types.INVALID_STATUS_TRANSITION,
    errors.TooManyKeys: problem_types.TOO_MANY_KEYS,
    errors.Unauthenticated: problem_types.UNAUTHORIZED,
    errors.TooManyFailures: problem_types.TOO_MANY_FAILURES,
    errors.RateLimited: problem_types.RATE_LIMITED,
    errors.EventLeased: problem_types.EVENT_LEASED,
    errors.TooManyInboxes: problem_types.TOO_MANY_INBOXES,
    errors.InboxExists: problem_types.PRECONDITION_FAILED,
    errors.InboxClosing: problem_types.UNAVAILABLE,
    errors.Overloaded: problem_types.OVERLOADED,
    errors.StoreUnavailable: problem_types.UNAVAILABLE,
    errors.StoreFull: problem_types.UNAVAILABLE,
    errors.StoreThrottled: problem_types.UNAVAILABLE,
}
# Problems for errors of Flask itself. Every other status is a bad request.
_BY_STATUS = {404: problem_types.NOT_FOUND, 405: problem_types.METHOD_NOT_ALLOWED, 500: problem_types.INTERNAL_ERROR}


class ProblemError(Exception):
    """Ends a request with a problem that has no error class of its own, because only HTTP knows it."""

    def __init__(self, problem: Problem, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail
        self.headers = headers or {}


def install(app: Flask) -> None:
    app.register_error_handler(ProblemError, lambda error: _respond(error.problem, error.detail, error.headers))
    app.register_error_handler(NotJSON, lambda error: _respond(problem_types.NOT_JSON, str(error)))
    app.register_error_handler(InboxError, _on_inbox_error)
    app.register_error_handler(HTTPException, _on_http_exception)
    app.register_error_handler(Exception, _on_bug)


def problem_document(problem: Problem, detail: str, request_id: str, field_errors: Sequence[FieldError] = ()) -> bytes:
    """Returns the document as JSON, with up to 20 field errors."""
    document: dict[str, Any] = {
        "type": problem.path,
        "title": problem.title,
        "status": problem.status,
        "detail": detail,
        "request_id": request_id,
    }
    if field_errors:
        document["errors"] = [
            {"pointer": error.pointer, "detail": error.detail} for error in field_errors[:_MAX_FIELD_ERRORS]
        ]
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def log_bug(error: BaseException, request_id: str | None = None) -> None:
    """Logs the type and the frames, but not the message: it may quote what was sent."""
    frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    _log.error("bug", error=type(error).__name__, frames=frames, request_id=request_id)


def _on_inbox_error(error: InboxError) -> Response:
    problem = _BY_ERROR.get(type(error))
    if problem is None:
        return _on_bug(error)
    detail = str(error)
    if problem is problem_types.UNAVAILABLE:
        # The cause is for the operator.
        _log.warning("unavailable", cause=detail, request_id=request_id())
        detail = problem.meaning
    headers = dict(_CHALLENGE) if problem is problem_types.UNAUTHORIZED else {}
    if error.retry_after_seconds is not None:
        headers["Retry-After"] = str(error.retry_after_seconds)
    return _respond(problem, detail, headers, error.field_errors)


def _on_http_exception(error: HTTPException) -> Response:
    problem = _BY_STATUS.get(error.code or 500, problem_types.BAD_REQUEST)
    if not isinstance(error, MethodNotAllowed):
        return _respond(problem)
    allowed = ", ".join(sorted(error.valid_methods or ()))
    # Without the path, which may contain a key by mistake.
    detail = f"The path does not support {request.method}. Allowed: {allowed}."
    return _respond(problem, detail, {"Allow": allowed})


def _on_bug(error: Exception) -> Response:
    log_bug(error, request_id())
    return _respond(problem_types.INTERNAL_ERROR)


def _respond(
    problem: Problem,
    detail: str = "",
    headers: Mapping[str, str] | None = None,
    field_errors: Sequence[FieldError] = (),
) -> Response:
    body = problem_document(problem, detail or problem.meaning, request_id(), field_errors)
    return Response(body, problem.status, headers, content_type=CONTENT_TYPE)
