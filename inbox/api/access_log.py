"""What each request leaves behind: an id in the answer, one line in the log, and a count."""

import random
import re
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import structlog
from flask import request

from authorizer import apikey
from inbox.services.blocking_polls import LONG_POLL

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_REQUEST_ID = "inbox.request_id"
_TENANT_ID = "inbox.tenant_id"
_MAY_WAIT = "inbox.may_wait"
STARTED_AT = "inbox.started_at"
REQUEST_ID = "[A-Za-z0-9._:-]{1,128}"
_log = structlog.get_logger()


class Answered(Protocol):
    """Hears of each answer. The route is a rule, None where there is none for the request."""

    def __call__(self, route: str | None, method: str, status: int, seconds: float, *, may_wait: bool) -> object: ...


class RequestTrail:
    """Stands around the app, where headers are still a plain list."""

    def __init__(self, app: "WSGIApplication", answered: Answered) -> None:
        self._app = app
        self._answered = answered

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        started_at = environ.setdefault(STARTED_AT, time.perf_counter())
        # The server may run a request more than once.
        poll = environ.get(LONG_POLL)
        if poll is not None:
            poll.found_nothing = False
        if _REQUEST_ID not in environ:
            environ[_REQUEST_ID] = _decent(environ.get("HTTP_X_REQUEST_ID", "")) or new_request_id()
        request_id = environ[_REQUEST_ID]

        def begin(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            headers += (("X-Request-Id", request_id), ("X-Content-Type-Options", "nosniff"))
            if not any(name == "Cache-Control" for name, _ in headers):
                headers.append(("Cache-Control", "no-store"))
            # The route and not the path, and no query: whatever a client puts there by mistake stays out of the log.
            rule = getattr(environ.get("werkzeug.request"), "url_rule", None)
            leave = partial(self._leave, environ, rule and rule.rule, int(status[:3]), started_at)
            poll = environ.get(LONG_POLL)
            if poll is not None and poll.found_nothing:
                # The server holds the answer back.
                poll.log_answer = leave
            else:
                leave()
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

        return self._app(environ, begin)

    def _leave(self, environ: "WSGIEnvironment", route: str | None, status: int, started_at: float) -> None:
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
        self._answered(route, method, status, seconds, may_wait=_MAY_WAIT in environ)


def request_id() -> str:
    """The caller's own X-Request-Id where it sent a decent one, so that its log and ours can be joined."""
    found: str = request.environ[_REQUEST_ID]
    return found


def note_tenant(tenant_id: str) -> None:
    """For the log: whose request it is."""
    request.environ[_TENANT_ID] = tenant_id


def note_wait() -> None:
    """For the count: how long it takes says nothing of the service."""
    request.environ[_MAY_WAIT] = True


def new_request_id() -> str:
    # Without a call to the system, at which a thread would give way to another one. It need not be hard to guess.
    return f"{random.getrandbits(128):032x}"


def _decent(given: str) -> str | None:
    # A key put there by mistake would end up in the log.
    return given if re.fullmatch(REQUEST_ID, given) and apikey.PREFIX not in given else None
