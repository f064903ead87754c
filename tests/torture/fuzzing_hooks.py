"""What schemathesis is told beyond the description: keys, and where the contract says more than OpenAPI can."""

import json
import os
from typing import Any

import schemathesis
from schemathesis import AuthContext, Case, HookContext, Response
from schemathesis.core.failures import Failure
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import AllowHeaderMismatch, RejectedPositiveData, UseAfterFree

from inbox.domain.events import DEFAULT_INBOX

# Who calls, and what was made for the run beforehand: names that are made up lead to a 404 and no further.
_KNOWN = json.loads(os.environ["FUZZING"])
_KEYS: dict[str, str] = _KNOWN["keys"]
_THERE: str = _KNOWN["there"]
# A key that revokes itself, or an admin who suspends the tenant of a key, leaves the rest of the run with nothing but
# refusals. So in the place of the run's own key or tenant stands another one.
_OWN: dict[str, list[str]] = _KNOWN["own"]
_INSTEAD = {"key_id": "key_0123456789abcdef", "tenant_id": "nobody"}

# Refusals of what the description allows. Each is of the contract, and none can be said in OpenAPI.
_DEPENDS_ON_THE_CLOCK = ("/expires_at", "`expires_at` must be in the future.")
# To JSON Schema 1.0 is an integer; here a number with a fraction is none, whatever the fraction is.
_NOT_WHOLE = ("must be a whole number.", "must be epoch milliseconds or ISO 8601.")
# A pattern that every language reads the same knows the control characters, and not what else cannot be printed.
_NOT_PRINTABLE = ("must have printable characters only.", "must be an email address.")


@schemathesis.auth(refresh_interval=None)
class Key:
    def get(self, case: Case[Any], context: AuthContext) -> str:
        return _KEYS["admin" if context.operation.path.startswith("/admin/") else "others"]

    def set(self, case: Case[Any], data: str, context: AuthContext) -> None:
        case.headers["Authorization"] = f"Bearer {data}"


@schemathesis.hook
def before_call(context: HookContext, case: Case[Any], kwargs: dict[str, Any]) -> None:
    for name, own in _OWN.items():
        if case.path_parameters.get(name) in own:
            case.path_parameters[name] = _INSTEAD[name]
    if case.meta is None:
        return
    if not case.meta.generation.mode.is_positive and case.query.get("raw") in (True, "true"):
        # With it any object is a body, which OpenAPI cannot say.
        del case.query["raw"]
    if case.meta.generation.mode.is_positive:
        _make_parts_fit(case)
        if case.meta.phase.name is not TestPhase.STATEFUL:
            _aim(case)


def _make_parts_fit(case: Case[Any]) -> None:
    """OpenAPI cannot say that a parameter goes with another only, so most of what it allows would be refused."""
    mode = case.query.get("mode", "consume")
    if mode != "lease":
        case.query.pop("lease_seconds", None)
    if mode != "peek":
        case.query.pop("order", None)
    else:
        case.headers.pop("Inbox-Attempt", None)
    if isinstance(case.body, dict) and "idempotency_key" in case.body:
        case.headers.pop("Idempotency-Key", None)
    # Only `default` can be turned off, and nothing else of it can be changed.
    if case.path == "/inboxes/{name}" and isinstance(case.body, dict) and "enabled" in case.body:
        case.path_parameters["name"] = DEFAULT_INBOX
        case.body.pop("event_types", None)
    elif case.path == "/inboxes/{name}" and case.path_parameters.get("name") == DEFAULT_INBOX and case.method != "GET":
        case.path_parameters["name"] = "crm"
    # It has to come out of an earlier answer.
    case.query.pop("cursor", None)
    # An empty inbox would cost the run its seconds.
    case.query.pop("wait", None)


def _aim(case: Case[Any]) -> None:
    if "tenant_id" in case.path_parameters:
        case.path_parameters["tenant_id"] = _THERE
    if case.path == "/inbox/{name}":
        case.path_parameters["name"] = _THERE
    if "inbox" in case.query:
        case.query["inbox"] = DEFAULT_INBOX


@schemathesis.hook
def filter_failure(context: HookContext, failure: Failure, case: Case[Any], response: Response) -> bool:
    """Whether it is one."""
    if isinstance(failure, RejectedPositiveData) and response.status_code == 412:
        return "If-None-Match" not in case.headers
    if isinstance(failure, RejectedPositiveData) and response.status_code == 422:
        faults = response.json()["errors"]
        return not (faults and all(_is_exception(fault["pointer"], fault["detail"], case) for fault in faults))
    if isinstance(failure, AllowHeaderMismatch):
        # A tenant may name an inbox `ack`, and then GET /inbox/ack polls it.
        return not (case.path.startswith("/inbox/") and failure.undocumented_methods == ["GET"])
    if isinstance(failure, UseAfterFree):
        # Nothing of a tenant that is deleted is removed: it can be looked at, and restored.
        return not case.path.startswith("/admin/tenants/{tenant_id}")
    return True


def _is_exception(pointer: str, detail: str, case: Case[Any]) -> bool:
    value = case.body.get(pointer[1:]) if isinstance(case.body, dict) else None
    if isinstance(value, float):
        return detail.endswith(_NOT_WHOLE)
    if isinstance(value, str) and not value.isprintable():
        return detail.endswith(_NOT_PRINTABLE)
    return (pointer, detail) == _DEPENDS_ON_THE_CLOCK
