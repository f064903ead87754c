"""Parses bodies, query strings and headers with marshmallow schemas."""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from flask import Request
from marshmallow import ValidationError

from inbox.api.request_bodies import read_body
from inbox.api.schemas.fields import RequestSchema
from inbox.api.services import services
from inbox.domain import exact_json
from inbox.domain.exact_json import ElementTooLarge, NotAnArray
from inbox.errors import EventTooLarge, FieldError, InvalidRequest

# Per schema. A query has up to 8 KiB.
_CACHED_QUERIES = 64

Reader = Callable[[Request], Any]
"""Returns what the schema loads. Raises InvalidRequest; for bodies also NotJSON and the errors of `read_body`."""


def body_reader(schema: RequestSchema) -> Reader:
    """Returns a reader of JSON bodies. With a `many` schema, it returns an iterator that parses on demand."""

    def read(request: Request) -> Any:
        body = read_body(request, schema)
        # The query parameters are already validated.
        chosen = schema.schema_for(request.args) if request.query_string else schema
        if body is None:
            return _load(chosen, {})
        if schema.many:
            return _load_each(chosen, body)
        return _load(chosen, exact_json.parse(body))

    return read


def query_reader(schema: RequestSchema) -> Reader:
    # Clients repeat their queries, and loading one takes a seventh of a poll's CPU time.
    @lru_cache(maxsize=_CACHED_QUERIES)
    def load(query: bytes) -> Any:
        given = parse_qs(query.decode(errors="replace"), keep_blank_values=True)
        repeated = [name for name, values in given.items() if len(values) > 1]
        if repeated:
            raise InvalidRequest(list(_field_errors({name: ["is given more than once"] for name in repeated})))
        return _load(schema, {name: value for name, (value,) in given.items()})

    return lambda request: copy(load(request.query_string))


def header_reader(schema: RequestSchema) -> Reader:
    when_empty = schema.load({})
    names = [field.data_key or name for name, field in schema.fields.items()]
    variables = {f"HTTP_{name.upper().replace('-', '_')}": name for name in names}

    def read(request: Request) -> Any:
        environ = request.environ
        given = {name: environ[variable] for variable, name in variables.items() if variable in environ}
        return _load(schema, given) if given else copy(when_empty)

    return read


def _load(schema: RequestSchema, data: Any) -> Any:
    try:
        return schema.load(data)
    except ValidationError as error:
        raise InvalidRequest(list(_field_errors(error.messages)), schema.advise(error.messages_dict)) from None


def _load_each(schema: Any, body: bytes) -> Iterator[Any]:
    """Yields the loaded elements of an array, each parsed on demand. Raises InvalidRequest at the end, for all."""
    max_event_bytes = services().max_event_bytes
    field_errors: list[FieldError] = []
    advice = ""
    position = -1
    try:
        elements = exact_json.parse_array(body, max_event_bytes + schema.max_bytes_around_payload)
        for position, element in enumerate(elements):
            if position == schema.max_elements:
                raise NotAnArray
            try:
                loaded = schema.load(element, many=False)
            except ValidationError as error:
                field_errors += _field_errors(
                    error.messages, f"/{position}", f"Event {position}", f" of event {position}"
                )
                advice = advice or schema.advise(error.messages_dict)
            else:
                yield loaded
        if position < 0:
            raise NotAnArray
    except NotAnArray:
        message = f"The body must be an array of 1 to {schema.max_elements} events."
        raise InvalidRequest([FieldError("", message)]) from None
    except ElementTooLarge as error:
        raise EventTooLarge(f"An event is larger than {max_event_bytes} bytes.", [error.position]) from None
    if field_errors:
        raise InvalidRequest(field_errors, advice)


def _field_errors(
    messages: Any, pointer: str = "", subject: str = "The body", of_event: str = ""
) -> Iterator[FieldError]:
    """Yields marshmallow's messages as sentences: {"limit": ["is required"]} becomes "`limit` is required."."""
    if isinstance(messages, Mapping):
        for name, inner in messages.items():
            if name == "_schema":
                yield from _field_errors(inner, pointer, subject)
            else:
                text = str(name)[:200]
                named = f"`{text}`{of_event}" if isinstance(name, str) else f"Entry {name} of {subject}"
                yield from _field_errors(inner, f"{pointer}/{text.replace('~', '~0').replace('/', '~1')}", named)
    else:
        for message in messages:
            yield FieldError(pointer, f"{subject} {message}.")
