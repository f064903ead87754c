"""flask-smorest, set up: one blueprint class and one Api, so that the spec says what the service does."""

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
from inbox.api.schemas import ProblemDocument

View = TypeVar("View", bound=Callable[..., Any])


class Decorator(Protocol):
    def __call__(self, view: View, /) -> View: ...


_SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "basic": {"type": "http", "scheme": "basic", "description": "The key as user name or as password."},
}


class Blueprint(flask_smorest.Blueprint):  # type: ignore[misc]
    """flask-smorest's own, with typed decorators that describe a view without wrapping it.

    Its wrappers would run on every request and find nothing to do: our views return finished responses.
    """

    def route(self, rule: str, **options: Any) -> Decorator:
        return cast(Decorator, super().route(rule, **options))

    def doc(self, **parts: Any) -> Decorator:
        return _describe_with(super().doc(**parts))

    def response(self, status: int, schema: Any = None, **options: Any) -> Decorator:
        return _describe_with(super().response(status, schema, **options))

    def refusals(self, *statuses: int) -> Decorator:
        """Documents the problems that a view can answer with. Wherever a key is needed there are limits too."""
        statuses = (*statuses, 429) if 401 in statuses else statuses
        return self.doc(responses={str(status): HTTPStatus(status).name for status in statuses})

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
    def _register_responses(self) -> None:
        # The library documents errors as application/json; here they are problem documents.
        for status in HTTPStatus:
            self.spec.components.response(status.name, _problem_response(status.phrase), lazy=True)
        self.spec.components.response("DEFAULT_ERROR", _problem_response("Any other problem"), lazy=True)


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
    return api


def _problem_response(description: str) -> dict[str, Any]:
    return {"description": description, "content": {CONTENT_TYPE: {"schema": ProblemDocument}}}
