"""Gives every response a request ID, logs one line per request, and reports it to the metrics."""

import random
import re
import time
from collections.abc import Iterable
from functools import partial
from typing import Any, Protocol
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import structlog
from flask import request

from authorizer import apikey
from inbox.services.arrivals import LONG_POLL

_REQUEST_ID = "inbox.request_id"
_TENANT_ID = "inbox.tenant_id"
_MAY_WAIT = "inbox.may_wait"
STARTED_AT = "inbox.started_at"
REQUEST_ID = "[A-Za-z0-9._:-]{1,128}"
_log = structlog.get_logger()


class OnResponse(Protocol):
    """Called once for each response that is sent. `route` is the URL rule, or None if no rule matched."""

    def __call__(self, route: str | None, method: str, status: int, seconds: float, *, may_wait: bool) -> object: ...


class AccessLog:
    """A WSGI middleware instead of an `after_request` function: there, headers are a plain list, which is faster."""

    def __init__(self, app: WSGIApplication, on_response: OnResponse) -> None:
        self._app = app
        self._on_response = on_response

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        started_at = environ.setdefault(STARTED_AT, time.perf_counter())
        # The server may run a request more than once.
        if _REQUEST_ID not in environ:
            environ[_REQUEST_ID] = _accept_id(environ.get("HTTP_X_REQUEST_ID", "")) or new_request_id()
        request_id = environ[_REQUEST_ID]

        def begin(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            headers += (("X-Request-Id", request_id), ("X-Content-Type-Options", "nosniff"))
            if not any(name == "Cache-Control" for name, _ in headers):
                headers.append(("Cache-Control", "no-store"))
            # The route, not the path or the query: they may contain a key by mistake.
            rule = getattr(environ.get("werkzeug.request"), "url_rule", None)
            log = partial(self._log, environ, rule and rule.rule, int(status[:3]), started_at)
            poll = environ.get(LONG_POLL)
            if poll is not None and poll.found_nothing:
                # The server holds the response back.
                poll.log_response = log
            else:
                log()
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

        return self._app(environ, begin)

    def _log(self, environ: WSGIEnvironment, route: str | None, status: int, started_at: float) -> None:
        seconds = time.perf_counter() - started_at
        method = environ["REQUEST_METHOD"]
        _log.info(
            "request",
            method=method,
            route=route,
            status=status,
            ms=round(seconds * 1000, 1),
            tenant_id=environ.get(_TENANT_ID),
            request_id=environ[_REQUEST_ID],
        )
        self._on_response(route, method, status, seconds, may_wait=_MAY_WAIT in environ)


def request_id() -> str:
    """Returns the client's X-Request-Id if it sent a valid one, else a generated one."""
    found: str = request.environ[_REQUEST_ID]
    return found


def note_tenant(tenant_id: str) -> None:
    """Adds the tenant to the log line."""
    request.environ[_TENANT_ID] = tenant_id


def note_wait() -> None:
    """Makes the metrics count the duration of this request as that of a long poll."""
    request.environ[_MAY_WAIT] = True


def new_request_id() -> str:
    # random needs no system call, at which the thread would be preempted. The ID need not be hard to guess.
    return f"{random.getrandbits(128):032x}"


def _accept_id(given: str) -> str | None:
    # A key that was sent here by mistake would end up in the log.
    return given if re.fullmatch(REQUEST_ID, given) and apikey.PREFIX not in given else None
