"""What each request leaves behind: an id in the answer, and one line in the log."""

import re
import time
import uuid

import structlog
from flask import Flask, Response, g, request

from authorizer import apikey

_GIVEN_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)
_log = structlog.get_logger()


def install(app: Flask) -> None:
    app.before_request(_begin)
    app.after_request(_end)


def request_id() -> str:
    """The caller's own X-Request-Id where it sent a decent one, so that its log and ours can be joined."""
    found: str | None = g.get("request_id")
    if found is None:
        given = request.headers.get("X-Request-Id", "")
        # A key put there by mistake would end up in the log.
        decent = _GIVEN_ID.fullmatch(given) and apikey.PREFIX not in given
        found = given if decent else new_request_id()
        g.request_id = found
    return found


def new_request_id() -> str:
    return uuid.uuid4().hex


def _begin() -> None:
    g.began = time.perf_counter()


def _end(response: Response) -> Response:
    headers = response.headers
    headers["X-Request-Id"] = request_id()
    headers["X-Content-Type-Options"] = "nosniff"
    headers.setdefault("Cache-Control", "no-store")
    # The route and not the path, and no query: whatever a client puts there by mistake stays out of the log.
    _log.info(
        "request",
        method=request.method,
        route=request.url_rule.rule if request.url_rule else None,
        status=response.status_code,
        ms=round((time.perf_counter() - g.began) * 1000, 1),
        tenant_id=g.get("tenant_id"),
        request_id=g.request_id,
    )
    return response
