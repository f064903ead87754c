"""flask-smorest, set up: one blueprint class and one Api, so that the spec says what the service does."""

import re
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Protocol, TypeVar, cast

import flask_smorest
from flask import Flask, request
from marshmallow import Schema

from inbox.api.problems import CONTENT_TYPE
from inbox.api.reading import reader
from inbox.api.request_trail import REQUEST_ID
from inbox.api.schemas import ProblemDocument
from inbox.tenants import INBOX_NAME, KEY_ID, TENANT_ID

View = TypeVar("View", bound=Callable[..., Any])


class Decorator(Protocol):
    def __call__(self, view: View, /) -> View: ...


_SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "basic": {"type": "http", "scheme": "basic", "description": "The key as user name or as password."},
}
_IN_PATHS = {
    "name": {"pattern": f"^{INBOX_NAME}$", "example": "crm"},
    "tenant_id": {"pattern": f"^{TENANT_ID}$", "example": "acme"},
    "key_id": {"pattern": f"^{KEY_ID}$", "example": "key_187ac454abf1e7d6"},
}
_REQUEST_ID = "X-Request-Id"
_GIVEN_ID = {
    "description": "1 to 128 of `A-Z a-z 0-9 . _ : -` come back in the answer and stand in the log; all else does not.",
    "schema": {"type": "string"},
}
_HEADERS = {
    _REQUEST_ID: {"required": True, "schema": {"type": "string", "pattern": f"^{REQUEST_ID}$"}},
    "Location": {"required": True, "schema": {"type": "string", "pattern": "^/"}},
    "Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}},
    "WWW-Authenticate": {"required": True, "schema": {"type": "string", "pattern": "^Bearer "}},
}
_OF_PROBLEM = {401: "WWW-Authenticate", 429: "Retry-After", 503: "Retry-After"}
LOCATION = {"Location": "Location"}


class Blueprint(flask_smorest.Blueprint):  # type: ignore[misc]
    """flask-smorest's own, with typed decorators that describe a view without wrapping it.

    Its wrappers would run on every request and find nothing to do: our views return finished responses.
    """

    def route(self, rule: str, **options: Any) -> Decorator:
        in_path = [
            {"in": "path", "name": name, "required": True, "schema": {"type": "string", **_IN_PATHS[name]}}
            for name in re.findall(r"<(\w+)>", rule)
        ]
        return cast(Decorator, super().route(rule, parameters=[*in_path, _REQUEST_ID], **options))

    def doc(self, **parts: Any) -> Decorator:
        return _describe_with(super().doc(**parts))

    def response(
        self, status: int, schema: Any = None, *, headers: dict[str, Any] | None = None, **options: Any
    ) -> Decorator:
        headers = {_REQUEST_ID: _REQUEST_ID} | (headers or {})
        return _describe_with(super().response(status, schema, headers=headers, **options))

    def refusals(self, *statuses: int) -> Decorator:
        """Documents the problems that a view can answer with. Wherever a key is needed there are limits too."""
        # Any request may have an overlong path, or be no HTTP.
        everywhere = {400, 429} if 401 in statuses else {400}
        return self.doc(responses={str(status): HTTPStatus(status).name for status in sorted({*statuses} | everywhere)})

    def arguments(self, schema: Schema, *, location: str = "json") -> Decorator:
        """Documents a part of the request, and hands it to the view, loaded, as one more argument."""
        describe = _describe_with(super().arguments(schema, location=location))
        read = reader(schema, location)

        def decorate(view: View) -> View:
            @wraps(view)
            def reading(*args: Any, **kwargs: Any) -> Any:
                return view(*args, read(request), **kwargs)

            return describe(cast(View, reading))

        return decorate


def _describe_with(decorate: Callable[[Any], Any]) -> Decorator:
    def describe(view: View) -> View:
        view._apidoc = decorate(view)._apidoc  # type: ignore[attr-defined]
        return view

    return describe


class Api(flask_smorest.Api):  # type: ignore[misc]
    # With a default every status would be a documented one.
    DEFAULT_ERROR_RESPONSE_NAME = None

    def _register_responses(self) -> None:
        # The library documents errors as application/json; here they are problem documents.
        for status in HTTPStatus:
            self.spec.components.response(status.name, _problem_response(status), lazy=True)


def create_api(app: Flask) -> Api:
    app.config.update(
        API_TITLE="Polling Inbox",
        API_VERSION=version("polling-inbox"),
        OPENAPI_VERSION="3.1.0",
        OPENAPI_URL_PREFIX="/",
        OPENAPI_JSON_PATH="openapi.json",
    )
    api = Api(
        app,
        spec_kwargs={
            "info": {"description": "Events in by POST, out by poll: in order, and once."},
            "security": [{name: []} for name in _SECURITY_SCHEMES],
        },
    )
    for name, scheme in _SECURITY_SCHEMES.items():
        api.spec.components.security_scheme(name, scheme)
    for name, header in _HEADERS.items():
        api.spec.components.header(name, header)
    api.spec.components.parameter(_REQUEST_ID, "header", _GIVEN_ID)
    return api


def _problem_response(status: HTTPStatus) -> dict[str, Any]:
    headers = {name: name for name in (_REQUEST_ID, _OF_PROBLEM.get(status)) if name}
    return {"description": status.phrase, "headers": headers, "content": {CONTENT_TYPE: {"schema": ProblemDocument}}}
