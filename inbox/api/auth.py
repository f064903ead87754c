"""Who is calling: the key in the headers, resolved, and checked against the scope that a view needs."""

from collections.abc import Callable, Collection
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from flask import Response, after_this_request, g, request

from authorizer import apikey, credentials
from authorizer.resolver import Principal
from inbox.api.access_log import note_tenant
from inbox.api.problem_types import MISSING_SCOPE, TENANT_INACTIVE
from inbox.api.problems import Refusal
from inbox.api.request_bodies import check_ignored_body
from inbox.api.services import services
from inbox.auth.authenticator import Access, RateLimitState
from inbox.domain.keys import Scope
from inbox.errors import RateLimited

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

P = ParamSpec("P")
R = TypeVar("R")

# Where API Gateway puts what the Lambda authorizer has found out, as WSGI names the header X-Inbox-Principal.
_SEAL = "HTTP_X_INBOX_PRINCIPAL"
_ALLOWANCE = "inbox.allowance"


def requires(*scopes: Scope, bypass_cache: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Lets a view run only for a key with one of these scopes; without any it takes every valid key.

    With `bypass_cache` the store is asked, whatever is cached: a key revoked a moment ago must not create another one.
    """

    def decorate(view: Callable[P, R]) -> Callable[P, R]:
        takes_body = getattr(view, "takes_body", False)

        @wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            caller = _identify(bypass_cache=bypass_cache)
            _count(caller)
            _check(caller, scopes)
            if not takes_body:
                check_ignored_body(request)
            return view(*args, **kwargs)

        # For the description.
        guarded.scopes = scopes  # type: ignore[attr-defined]
        return guarded

    return decorate


def check_scopes(*scopes: Scope) -> None:
    """Refuses the request unless its key has one of these scopes. For views whose scope depends on a parameter."""
    _check(principal(), scopes)


def check_again(*scopes: Scope) -> None:
    """Refuses a request that has been under way for a while unless its key may still make it."""
    _check(_identify(), scopes)


def current_access(*scopes: Scope) -> Access:
    """Returns the key and scopes that the request needs while it waits."""
    key, _, _ = _credentials(request.environ)
    return Access(apikey.hash_of(key or ""), scopes)


def principal() -> Principal:
    found: Principal = g.principal
    return found


def missing_scope(*scopes: Scope) -> Refusal:
    return Refusal(MISSING_SCOPE, f"This call needs a key with the scope {' or '.join(scopes)}.")


def _identify(*, bypass_cache: bool = False) -> Principal:
    caller = services().authenticator.identify(*_credentials(request.environ), bypass_cache=bypass_cache)
    g.principal = caller
    note_tenant(caller.tenant_id)
    return caller


def _credentials(environ: "WSGIEnvironment") -> tuple[str | None, str, str | None]:
    """Returns the key, the client's address and the seal, as WSGI has them: header objects would cost more."""
    key = credentials.find_key(environ.get("HTTP_AUTHORIZATION"), environ.get("HTTP_X_API_KEY"))
    return key, environ.get("REMOTE_ADDR") or "", environ.get(_SEAL)


def _check(caller: Principal, scopes: Collection[Scope]) -> None:
    if not caller.tenant_active:
        raise Refusal(TENANT_INACTIVE, "The tenant of this key is not active.")
    if scopes and caller.scopes.isdisjoint(scopes):
        raise missing_scope(*scopes)


def _count(caller: Principal) -> None:
    """Counts the request under way against its tenant's limit, once however often the server runs it."""
    environ = request.environ
    if _ALLOWANCE not in environ:
        environ[_ALLOWANCE] = services().authenticator.allow(caller)
    allowance: RateLimitState | None = environ[_ALLOWANCE]
    if allowance is None:
        return
    after_this_request(lambda response: _with_allowance(response, allowance))
    if allowance.bucket.wait_seconds:
        raise RateLimited(allowance.requests_per_second, allowance.bucket.wait_seconds)


def _with_allowance(response: Response, allowance: RateLimitState) -> Response:
    """As draft-ietf-httpapi-ratelimit-headers has it."""
    bucket = allowance.bucket
    response.headers["RateLimit-Policy"] = f'"tenant";q={allowance.requests_per_second};w=1'
    response.headers["RateLimit"] = f'"tenant";r={bucket.remaining};t={bucket.full_in_seconds}'
    return response
