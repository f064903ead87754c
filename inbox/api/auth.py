"""Who is calling: the key in the headers, resolved, and checked against the scope that a view needs."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from flask import g, request

from authorizer import credentials
from authorizer.resolver import Principal
from inbox.api.problem_catalogue import MISSING_SCOPE, TENANT_INACTIVE, UNAUTHORIZED
from inbox.api.problems import Refusal
from inbox.api.services import services
from inbox.tenants import Scope

P = ParamSpec("P")
R = TypeVar("R")

# Bearer alone: a Basic challenge would make browsers ask for a password over the console.
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="Polling Inbox"'}


def requires(*scopes: Scope) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Lets a view run only for a key with one of these scopes; without any it takes every valid key."""

    def decorate(view: Callable[P, R]) -> Callable[P, R]:
        @wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            admit(*scopes)
            return view(*args, **kwargs)

        return guarded

    return decorate


def principal() -> Principal:
    found: Principal = g.principal
    return found


def admit(*scopes: Scope) -> None:
    """Refuses the request under way unless its key is valid now and has one of these scopes."""
    key = credentials.find_key(request.headers.get("Authorization"), request.headers.get("X-API-Key"))
    caller = services().resolver.resolve(key) if key else None
    if caller is None:
        raise Refusal(UNAUTHORIZED, "This call needs a valid API key.", _CHALLENGE)
    g.principal = caller
    g.tenant_id = caller.tenant_id
    if not caller.tenant_active:
        raise Refusal(TENANT_INACTIVE, "The tenant of this key is not active.")
    if scopes and caller.scopes.isdisjoint(scopes):
        raise Refusal(MISSING_SCOPE, f"This call needs a key with the scope {' or '.join(scopes)}.")
