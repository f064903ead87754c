"""Hooks for schemathesis: keys, and rules of the contract that OpenAPI cannot express."""

import json
import os
from typing import Any

import schemathesis
from schemathesis import AuthContext, Case, HookContext, Response
from schemathesis.core.failures import Failure
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import AllowHeaderMismatch, RejectedPositiveData, UseAfterFree

from inbox.domain.events import DEFAULT_INBOX

# Keys and existing resources. Requests with generated names would only test the 404.
_KNOWN = json.loads(os.environ["FUZZING"])
_KEYS: dict[str, str] = _KNOWN["keys"]
_EXISTING: str = _KNOWN["existing"]
# If the run revoked its own key or suspended its own tenant, all later requests would be refused. Requests
# use another key or tenant instead.
_OWN: dict[str, list[str]] = _KNOWN["own"]
_REPLACEMENTS = {"key_id": "key_0123456789abcdef", "tenant_id": "unknown"}

# Correct refusals of requests that the OpenAPI document allows, because OpenAPI cannot express the rule.
_DEPENDS_ON_THE_CLOCK = ("/expires_at", "`expires_at` must be in the future.")
# 1.0 is an integer in JSON Schema, but not in the API.
_NOT_WHOLE = ("must be a whole number.", "must be epoch milliseconds or ISO 8601.")
# A portable pattern can exclude control characters, but not all unprintable characters.
_NOT_PRINTABLE = ("must have printable characters only.", "must be an email address.")


@schemathesis.auth(refresh_interval=None)
class KeyHeader:
    def get(self, case: Case[Any], context: AuthContext) -> str:
        return _KEYS["admin" if context.operation.path.startswith("/admin/") else "others"]

    def set(self, case: Case[Any], data: str, context: AuthContext) -> None:
        case.headers["Authorization"] = f"Bearer {data}"


@schemathesis.hook
def before_call(context: HookContext, case: Case[Any], kwargs: dict[str, Any]) -> None:
    for name, own in _OWN.items():
        if case.path_parameters.get(name) in own:
            case.path_parameters[name] = _REPLACEMENTS[name]
    if case.meta is None:
        return
    if not case.meta.generation.mode.is_positive and case.query.get("raw") in (True, "true"):
        # With `raw`, any object is a valid body, which OpenAPI cannot express.
        del case.query["raw"]
    if case.meta.generation.mode.is_positive:
        _remove_invalid_combinations(case)
        if case.meta.phase.name is not TestPhase.STATEFUL:
            _use_existing_resources(case)


def _remove_invalid_combinations(case: Case[Any]) -> None:
    """Removes combinations of parameters that the API refuses. OpenAPI cannot express them, and most cases have one."""
    mode = case.query.get("mode", "consume")
    if mode != "lease":
        case.query.pop("lease_seconds", None)
    if mode != "peek":
        case.query.pop("order", None)
    else:
        case.headers.pop("Inbox-Attempt", None)
    if isinstance(case.body, dict) and "idempotency_key" in case.body:
        case.headers.pop("Idempotency-Key", None)
    # `enabled` is only valid for `default`, whose other members cannot change.
    if case.path == "/inboxes/{name}" and isinstance(case.body, dict) and "enabled" in case.body:
        case.path_parameters["name"] = DEFAULT_INBOX
        case.body.pop("event_types", None)
    elif case.path == "/inboxes/{name}" and case.path_parameters.get("name") == DEFAULT_INBOX and case.method != "GET":
        case.path_parameters["name"] = "crm"
    # A cursor must come from an earlier response.
    case.query.pop("cursor", None)
    # Waiting on empty inboxes would slow down the run.
    case.query.pop("wait", None)


def _use_existing_resources(case: Case[Any]) -> None:
    if "tenant_id" in case.path_parameters:
        case.path_parameters["tenant_id"] = _EXISTING
    if case.path == "/inbox/{name}":
        case.path_parameters["name"] = _EXISTING
    if "inbox" in case.query:
        case.query["inbox"] = DEFAULT_INBOX


@schemathesis.hook
def filter_failure(context: HookContext, failure: Failure, case: Case[Any], response: Response) -> bool:
    """Returns True if the failure is real."""
    if isinstance(failure, RejectedPositiveData) and response.status_code == 412:
        return "If-None-Match" not in case.headers
    if isinstance(failure, RejectedPositiveData) and response.status_code == 422:
        errors = response.json()["errors"]
        return not (errors and all(_is_correct_refusal(error["pointer"], error["detail"], case) for error in errors))
    if isinstance(failure, AllowHeaderMismatch):
        # A tenant may name an inbox `ack`, and then GET /inbox/ack polls it.
        return not (case.path.startswith("/inbox/") and failure.undocumented_methods == ["GET"])
    if isinstance(failure, UseAfterFree):
        # A deleted tenant can be read and restored.
        return not case.path.startswith("/admin/tenants/{tenant_id}")
    return True


def _is_correct_refusal(pointer: str, detail: str, case: Case[Any]) -> bool:
    value = case.body.get(pointer[1:]) if isinstance(case.body, dict) else None
    if isinstance(value, float):
        return detail.endswith(_NOT_WHOLE)
    if isinstance(value, str) and not value.isprintable():
        return detail.endswith(_NOT_PRINTABLE)
    return (pointer, detail) == _DEPENDS_ON_THE_CLOCK
