"""Descriptions and examples for OpenAPI: of single fields, and documents built from them."""

from typing import Any

import orjson
from marshmallow import Schema
from marshmallow.fields import Field, List, Nested

from inbox.api.problem_types import INVALID_REQUEST, Problem
from inbox.api.problems import problem_document
from inbox.errors import FieldError

# One event and one key in all examples, at times that are consistent.
EVENT_ID = "d3aac242-ddcb-4545-8ef5-df261c6bebfa"
EVENT_TYPE = "order.created"
PAYLOAD = {"order": 1001, "customer": {"name": "Ada"}}
RECEIPT = "06rCQt3LRUWO9d8mHGvr-lwfCp47fUYojy6QxNGms1dkZWZhdWx0"
STORED_MS, STORED_AT = 1_794_794_204_539, "2026-11-16T01:56:44.539Z"
DELIVERED_AT = "2026-11-16T01:57:03.101Z"
LEASE_EXPIRES_AT = "2026-11-16T01:58:03.101Z"
CURSOR = "yr2SdZ_nRCEsXXkxNzk0Nzk0MjA0NTM5"
KEY_ID = "key_187ac454abf1e7d6"
REQUEST_ID = "722cdd4e3df84a52869ccf216fc13da5"


def doc(description: str, *examples: Any) -> dict[str, Any]:
    """Returns the metadata of a field."""
    return {"description": description} | ({"examples": list(examples)} if examples else {})


def example(value: Any) -> dict[str, Any]:
    """Returns the metadata of a field that needs no description."""
    return {"examples": [value]}


def example_of(schema: Schema, **members: Any) -> Any:
    """Returns a document with the example of every member that has one. `members` replace examples."""
    document = {
        field.data_key or name: value for name, field in schema.fields.items() for value in _first_example(field)
    }
    return [document | members] if schema.many else document | members


def named(**documents: Any) -> dict[str, Any]:
    """Returns OpenAPI's `examples`: several documents, each with its name."""
    return {name: {"value": document} for name, document in documents.items()}


def _first_example(field: Field[Any]) -> list[Any]:
    """Returns a list of one example, or an empty list."""
    if "examples" in field.metadata:
        return [field.metadata["examples"][0]]
    if isinstance(field, Nested):
        return [example_of(field.schema)]
    if isinstance(field, List):
        return [inner] if (inner := _first_example(field.inner)) else []
    return []


def example_of_problem(problem: Problem) -> Any:
    """Returns the document that a response with this problem has."""
    field_errors = [FieldError("/surprise", problem.example)] if problem is INVALID_REQUEST else []
    return orjson.loads(problem_document(problem, problem.example or problem.meaning, REQUEST_ID, field_errors))
