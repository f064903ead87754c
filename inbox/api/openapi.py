"""flask-smorest, set up: one blueprint class and one Api, so that the spec says what the service does."""

import re
from collections.abc import Callable, Sequence
from functools import wraps
from http import HTTPStatus
from inspect import getdoc
from typing import Any, Protocol, TypeVar, cast

import flask_smorest
from flask import Flask, request
from marshmallow import Schema

from inbox import __version__
from inbox.api import examples
from inbox.api.problem_types import NOT_JSON, PREFETCH_REFUSED, PROBLEMS, Problem
from inbox.api.problems import CONTENT_TYPE
from inbox.api.request_parsing import reader
from inbox.api.response_headers import EVERYWHERE, HEADERS, LIMITS, Refs, of_problem
from inbox.api.schemas.events import RAW_EVENT, ProblemDocument
from inbox.domain.inboxes import INBOX_NAME
from inbox.domain.keys import KEY_ID
from inbox.domain.tenants import TENANT_ID

View = TypeVar("View", bound=Callable[..., Any])


class Decorator(Protocol):
    def __call__(self, view: View, /) -> View: ...


_SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "basic": {"type": "http", "scheme": "basic", "description": "The key as user name or as password."},
}
# With an example of their own, which *Try it out* begins with. Of other parameters it takes the default, and the
# examples in their schemas are only shown: together they would be filters that find nothing.
_IN_PATHS: dict[str, tuple[str, dict[str, str]]] = {
    "event_id": (examples.EVENT_ID, {"format": "uuid"}),
    "name": ("crm", {"pattern": f"^{INBOX_NAME}$"}),
    "tenant_id": ("acme", {"pattern": f"^{TENANT_ID}$"}),
    "key_id": (examples.KEY_ID, {"pattern": f"^{KEY_ID}$"}),
}
# Of a body, of a poll, and whatever can be in conflict.
_OF_SOME_CALLS = {NOT_JSON, PREFETCH_REFUSED, *(each for each in PROBLEMS.values() if each.status == 409)}
_SUMMARY = (
    "Events in by POST, out by poll: in order, and once.\n\n"
    "Answers to GET above 1 KiB are compressed for clients that send `Accept-Encoding: gzip`."
)
# Not a header parameter: *Try it out* and generated clients would offer it and still send the body uncompressed.
_BODY = "May be compressed, with the header `Content-Encoding: gzip`."
_REQUEST_ID = "X-Request-Id"
_GIVEN_ID = {
    "description": "1 to 128 of `A-Z a-z 0-9 . _ : -` come back in the answer and stand in the log; all else does not.",
    "schema": {"type": "string", "examples": [examples.REQUEST_ID]},
}


class Blueprint(flask_smorest.Blueprint):  # type: ignore[misc]
    """flask-smorest's own, with typed decorators that describe a view without wrapping it.

    Its wrappers would run on every request and find nothing to do: our views return finished responses.
    """

    def route(self, rule: str, **options: Any) -> Decorator:
        in_path = [_path_parameter(name) for name in re.findall(r"<(?:uuid:)?(\w+)>", rule)]
        register = super().route(rule, parameters=[*in_path, _REQUEST_ID], **options)

        def decorate(view: View) -> View:
            return cast(View, register(self.doc(**_told_by(view))(view)))

        return decorate

    def doc(self, **parts: Any) -> Decorator:
        return _describe_with(super().doc(**parts))

    def response(
        self,
        status: int,
        schema: type[Schema] | Schema | None = None,
        *,
        headers: Refs | None = None,
        examples: dict[str, Any] | None = None,
        **options: Any,
    ) -> Decorator:
        schema = schema() if isinstance(schema, type) else schema
        options |= _examples(schema, examples)
        return _describe_with(super().response(status, schema, headers=EVERYWHERE | (headers or {}), **options))

    def refusals(self, *refused: int | Problem) -> Decorator:
        """Documents the problems that a view can answer with: a status stands for those that any view may have.

        Wherever a key is needed there are limits too, and any request may have an overlong path, or be no HTTP.
        """
        everywhere = {400, 429} if 401 in refused else {400}
        statuses = everywhere | {each.status if isinstance(each, Problem) else each for each in refused}
        own = [each for each in refused if isinstance(each, Problem)]
        responses: dict[str, Any] = {}
        for status in map(HTTPStatus, sorted(statuses)):
            of_status = [each for each in own if each.status == status]
            responses[str(status)] = _problem_response(status, of_status) if of_status else status.name
        return self.doc(responses=responses)

    def arguments(self, schema: Schema, *, location: str = "json", examples: dict[str, Any] | None = None) -> Decorator:
        """Documents a part of the request, and hands it to the view, loaded, as one more argument."""
        of_body = {"description": _BODY} | _examples(schema, examples) if location == "json" else {}
        required = not getattr(schema, "may_be_missing", False)
        describe = _describe_with(super().arguments(schema, location=location, required=required, **of_body))
        read = reader(schema, location)

        def decorate(view: View) -> View:
            @wraps(view)
            def reading(*args: Any, **kwargs: Any) -> Any:
                # The request itself: the proxy would look it up at each access.
                return view(*args, read(request._get_current_object()), **kwargs)  # type: ignore[attr-defined]

            if location == "json":
                # For `requires`: the body is read and checked here.
                reading.takes_body = True  # type: ignore[attr-defined]
            return describe(cast(View, reading))

        return decorate


def _path_parameter(name: str) -> dict[str, Any]:
    example, form = _IN_PATHS[name]
    return {"in": "path", "name": name, "required": True, "example": example, "schema": {"type": "string", **form}}


def _told_by(view: Callable[..., Any]) -> dict[str, Any]:
    """What its name, its words and its guard say."""
    parts: dict[str, Any] = {"operationId": view.__name__, "description": (getdoc(view) or "").partition("\n\n")[2]}
    scopes = getattr(view, "scopes", None)
    if scopes is None:
        return parts | {"security": []}
    needs = " or ".join(f"`{scope}`" for scope in scopes)
    parts["description"] += f"\n\nNeeds a key with the scope {needs}." if needs else "\n\nTakes every valid key."
    parts["responses"] = {status: {"headers": LIMITS} for status in view._apidoc["success_status_codes"]}  # type: ignore[attr-defined]
    return parts


def _examples(schema: Schema | None, several: dict[str, Any] | None) -> dict[str, Any]:
    if several is not None:
        return {"examples": several}
    return {} if schema is None else {"example": examples.example_of(schema)}


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
        for status in {HTTPStatus(problem.status) for problem in PROBLEMS.values()} - {HTTPStatus.CONFLICT}:
            self.spec.components.response(status.name, _problem_response(status))

    def _register_pagination_header(self) -> None:
        """Nothing here has the library's, and its schema would be in the description nevertheless."""


def create_api(app: Flask) -> Api:
    app.config.update(
        API_TITLE="Polling Inbox",
        API_VERSION=__version__,
        OPENAPI_VERSION="3.1.0",
        OPENAPI_URL_PREFIX="/",
        OPENAPI_JSON_PATH="openapi.json",
    )
    api = Api(
        app,
        spec_kwargs={
            "info": {"description": _SUMMARY},
            # Where the description itself comes from.
            "servers": [{"url": "/"}],
            "security": [{name: []} for name in _SECURITY_SCHEMES],
        },
    )
    for name, scheme in _SECURITY_SCHEMES.items():
        api.spec.components.security_scheme(name, scheme)
    for name, header in HEADERS.items():
        api.spec.components.header(name, header)
    api.spec.components.schema("RawEvent", RAW_EVENT)
    api.spec.components.parameter(_REQUEST_ID, "header", _GIVEN_ID)
    return api


def _problem_response(status: HTTPStatus, own: Sequence[Problem] = ()) -> dict[str, Any]:
    anywhere = [each for each in PROBLEMS.values() if each.status == status and each not in _OF_SOME_CALLS]
    content = {"schema": ProblemDocument, "examples": examples.of_problems([*anywhere, *own])}
    return {"description": status.phrase, "headers": of_problem(status), "content": {CONTENT_TYPE: content}}
