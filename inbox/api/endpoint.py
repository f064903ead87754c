"""`@Endpoint` declares what a view accepts and returns: it checks requests, and OpenAPI is generated from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

from flask import Response, request
from marshmallow import Schema

from inbox.api.authorization import authorize
from inbox.api.problem_types import Problem
from inbox.api.request_bodies import check_ignored_body
from inbox.api.request_parsing import body_reader, header_reader, query_reader
from inbox.api.schemas.fields import RequestSchema
from inbox.domain.keys import Scope

View = Callable[..., Response]
PUBLIC = None
"""The `scopes` of an endpoint that needs no key."""
ANY_KEY: tuple[Scope, ...] = ()
"""The `scopes` of an endpoint that accepts every valid key."""


@dataclass(frozen=True, slots=True)
class Success:
    """One successful response. `schema` is a marshmallow or a JSON schema; `headers` are names in openapi.HEADERS.

    Without `examples`, OpenAPI shows one built from the marshmallow schema.
    """

    schema: Schema | dict[str, Any] | None = None
    description: str = "OK"
    headers: tuple[str, ...] = ()
    examples: dict[str, Any] | None = None
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Runs a view for requests with a key of one of `scopes`, with `headers`, `query` and `body` as parsed arguments.

    With the parameter `mode=peek`, one of `peek_scopes` is enough.

    Without `query`, an endpoint that needs a key refuses all query parameters: a parameter without effect could be
    mistaken for a limit to what the request changes. `problems` are those that the other attributes do not imply.
    `body_schema` and `body_examples` replace what OpenAPI shows of `body`. `bypass_key_cache` is for all endpoints of
    keys and tenants: a key that was just revoked must not create another.
    """

    scopes: tuple[Scope, ...] | None
    returns: Mapping[int, Success]
    peek_scopes: tuple[Scope, ...] = ()
    problems: tuple[Problem, ...] = ()
    headers: RequestSchema | None = None
    query: RequestSchema | None = None
    body: RequestSchema | None = None
    body_schema: dict[str, Any] | None = None
    body_examples: dict[str, Any] | None = None
    bypass_key_cache: bool = False

    def __call__(self, view: View) -> View:
        needs_no_query = self.scopes is not PUBLIC and self.query is None
        check_no_parameters = query_reader(RequestSchema()) if needs_no_query else None
        schemas = {"headers": self.headers, "query": self.query, "body": self.body}
        readers = {"headers": header_reader, "query": query_reader, "body": body_reader}
        arguments = [(name, readers[name](schema)) for name, schema in schemas.items() if schema]

        @wraps(view)
        def handle(**path_arguments: Any) -> Response:
            # The proxy would look up the request at each access.
            current = request._get_current_object()  # type: ignore[attr-defined]
            if self.scopes is not PUBLIC:
                authorize(current, self.scopes, self.peek_scopes, bypass_cache=self.bypass_key_cache)
                if self.body is None:
                    check_ignored_body(current)
            if check_no_parameters:
                check_no_parameters(current)
            return view(**{name: read(current) for name, read in arguments}, **path_arguments)

        handle.endpoint = self  # type: ignore[attr-defined]
        return handle
