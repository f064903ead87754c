"""What the description shows: whole documents, put together from the `examples` that stand beside each member."""

from collections.abc import Iterable
from typing import Any

import orjson
from marshmallow import Schema
from marshmallow.fields import Field, List, Nested

from inbox.api.problem_types import INVALID_REQUEST, Problem
from inbox.api.problems import problem_document
from inbox.errors import FieldError

# One event and one key in all of them, at times that fit together.
EVENT_ID = "d3aac242-ddcb-4545-8ef5-df261c6bebfa"
EVENT_TYPE = "order.created"
PAYLOAD = {"order": 1001, "customer": {"name": "Ada"}}
RECEIPT = "06rCQt3LRUWO9d8mHGvr-lwfCp47fUYojy6QxNGms1dkZWZhdWx0"
STORED_MS, STORED_AT = 1_794_794_204_539, "2026-11-16T01:56:44.539Z"
HANDED_OUT_AT = "2026-11-16T01:57:03.101Z"
LEASED_UNTIL = "2026-11-16T01:58:03.101Z"
CURSOR = "yr2SdZ_nRCEsXXkxNzk0Nzk0MjA0NTM5"
KEY_ID = "key_187ac454abf1e7d6"
REQUEST_ID = "722cdd4e3df84a52869ccf216fc13da5"

# What answers say of a problem where that is more than what it means.
_DETAILS = {
    "not-json": "Invalid JSON at line 1, column 12.",
    "unauthorized": "Send a valid API key as `Authorization: Bearer KEY`.",
    "tenant-inactive": "The tenant of this key is not active.",
    "prefetch-refused": "A prefetch would take events that nobody reads.",
    "idempotency-conflict": "The idempotency key was used for a different event. Nothing was stored.",
    "event-leased": "The event is leased. Replay it after the lease has ended.",
    "too-many-inboxes": "A tenant has at most 50 inboxes.",
    "too-many-keys": "The tenant has 100 active keys. Revoke one first.",
    "already-exists": "There is a tenant acme already.",
    "email-taken": "The e-mail belongs to another tenant.",
    "wrong-step": "Cannot change status from UNVALIDATED to REGISTERED. Allowed: VALIDATED, SUSPENDED.",
    "not-allowed": "A revoked or expired key cannot be rotated. Create a new one.",
    "too-large": "The body is larger than 262144 bytes.",
    "unsupported-media-type": "The Content-Type has to be application/json.",
    "invalid-request": "`errors` lists what is wrong with the request.",
    "rate-limited": "The tenant may make 10 requests per second.",
    "too-many-failures": "Too many requests without a valid API key came from this address.",
}


def example_of(schema: Schema, **members: Any) -> Any:
    """A document of that form: every member that has an example, and these."""
    document = {
        field.data_key or name: example for name, field in schema.fields.items() for example in _first_example(field)
    }
    return [document | members] if schema.many else document | members


def named(**documents: Any) -> dict[str, Any]:
    """Several examples of one thing."""
    return {name: {"value": document} for name, document in documents.items()}


def of_problems(problems: Iterable[Problem]) -> dict[str, Any]:
    return named(**{problem.slug: _example_of_problem(problem) for problem in problems})


def _first_example(field: Field[Any]) -> list[Any]:
    """One, or none."""
    if "examples" in field.metadata:
        return [field.metadata["examples"][0]]
    if isinstance(field, Nested):
        return [example_of(field.schema)]
    if isinstance(field, List):
        return [inner] if (inner := _first_example(field.inner)) else []
    return []


def _example_of_problem(problem: Problem) -> Any:
    # Every call refuses what it does not know.
    field_errors = [FieldError("/surprise", "Unknown field.")] if problem is INVALID_REQUEST else []
    detail = _DETAILS.get(problem.slug, problem.meaning)
    return orjson.loads(problem_document(problem, detail, REQUEST_ID, field_errors))
