"""What each request leaves behind: an id in the answer, and one line in the log."""

import random
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import structlog
from flask import request

from authorizer import apikey

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_REQUEST_ID = "inbox.request_id"
_TENANT_ID = "inbox.tenant_id"
REQUEST_ID = "[A-Za-z0-9._:-]{1,128}"
_log = structlog.get_logger()


class RequestTrail:
    """Stands around the app, where headers are still a plain list."""

    def __init__(self, app: "WSGIApplication") -> None:
        self._app = app

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        began = time.perf_counter()
        environ[_REQUEST_ID] = request_id = _decent(environ.get("HTTP_X_REQUEST_ID", "")) or new_request_id()

        def begin(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            headers += (("X-Request-Id", request_id), ("X-Content-Type-Options", "nosniff"))
            if not any(name == "Cache-Control" for name, _ in headers):
                headers.append(("Cache-Control", "no-store"))
            _write_line(environ, status, began)
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

        return self._app(environ, begin)


def request_id() -> str:
    """The caller's own X-Request-Id where it sent a decent one, so that its log and ours can be joined."""
    found: str = request.environ[_REQUEST_ID]
    return found


def note_tenant(tenant_id: str) -> None:
    """For the log: whose request it is."""
    request.environ[_TENANT_ID] = tenant_id


def new_request_id() -> str:
    # Without a call to the system, at which a thread would give way to another one. It need not be hard to guess.
    return f"{random.getrandbits(128):032x}"


def _decent(given: str) -> str | None:
    # A key put there by mistake would end up in the log.
    return given if re.fullmatch(REQUEST_ID, given) and apikey.PREFIX not in given else None


def _write_line(environ: "WSGIEnvironment", status: str, began: float) -> None:
    # The route and not the path, and no query: whatever a client puts there by mistake stays out of the log.
    rule = getattr(environ.get("werkzeug.request"), "url_rule", None)
    _log.info(
        "request",
        method=environ["REQUEST_METHOD"],
        route=rule and rule.rule,
        status=int(status[:3]),
        ms=round((time.perf_counter() - began) * 1000, 1),
        tenant_id=environ.get(_TENANT_ID),
        request_id=environ[_REQUEST_ID],
    )
