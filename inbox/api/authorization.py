"""Authorizes requests: resolves the API key in the headers and checks its tenant, its scopes and the rate limit."""

from wsgiref.types import WSGIEnvironment

from flask import Request, Response, after_this_request, g, request

from authorizer import apikey, credentials
from authorizer.resolver import Principal
from inbox.api.access_log import note_tenant
from inbox.api.problem_types import MISSING_SCOPE, TENANT_INACTIVE
from inbox.api.problems import ProblemError
from inbox.api.services import services
from inbox.auth.authenticator import Access
from inbox.auth.token_buckets import BucketState
from inbox.domain.keys import Scope
from inbox.errors import RateLimited

# X-Inbox-Principal: the Lambda authorizer's signed result, which API Gateway passes on.
_SEAL = "HTTP_X_INBOX_PRINCIPAL"
# Keys of the WSGI environ.
_RATE_LIMIT_STATE = "inbox.rate_limit_state"
_SCOPES = "inbox.scopes"


def authorize(
    request: Request, scopes: tuple[Scope, ...], peek_scopes: tuple[Scope, ...] = (), *, bypass_cache: bool = False
) -> None:
    """Checks the request's key, counts it against the rate limit, and stores the principal for the view.

    With `mode=peek`, `peek_scopes` are accepted like `scopes`. An empty `scopes` accepts every valid key. Raises
    Unauthenticated or TooManyFailures if there is no valid key, RateLimited above the tenant's limit, and ProblemError
    if the tenant is not active or the key has no accepted scope.
    """
    principal = _identify(request.environ, bypass_cache=bypass_cache)
    _count(request.environ, principal)
    if peek_scopes and request.args.get("mode") == "peek":
        scopes = peek_scopes + scopes
    request.environ[_SCOPES] = scopes
    _check(principal, scopes)


def check_again() -> None:
    """Repeats the check of the key and its scopes for a request that waits: the key may have been revoked meanwhile."""
    _check(_identify(request.environ), request.environ[_SCOPES])


def current_access() -> Access:
    """Returns the hash of the request's key, and the scopes of which it needs one."""
    key, _, _ = _credentials(request.environ)
    return Access(apikey.hash_of(key or ""), request.environ[_SCOPES])


def principal() -> Principal:
    found: Principal = g.principal
    return found


def missing_scope(*scopes: Scope) -> ProblemError:
    return ProblemError(MISSING_SCOPE, f"This request needs a key with the scope {' or '.join(scopes)}.")


def _identify(environ: WSGIEnvironment, *, bypass_cache: bool = False) -> Principal:
    principal = services().authenticator.identify(*_credentials(environ), bypass_cache=bypass_cache)
    g.principal = principal
    note_tenant(principal.tenant_id)
    return principal


def _credentials(environ: WSGIEnvironment) -> tuple[str | None, str, str | None]:
    """Returns the key, the client's address and the seal, from the WSGI environ: header objects would cost more."""
    key = credentials.find_key_in_headers(environ.get("HTTP_AUTHORIZATION"), environ.get("HTTP_X_API_KEY"))
    return key, environ.get("REMOTE_ADDR") or "", environ.get(_SEAL)


def _check(principal: Principal, scopes: tuple[Scope, ...]) -> None:
    if not principal.tenant_active:
        raise ProblemError(TENANT_INACTIVE, TENANT_INACTIVE.example)
    if scopes and principal.scopes.isdisjoint(scopes):
        raise missing_scope(*scopes)


def _count(environ: WSGIEnvironment, principal: Principal) -> None:
    """Counts the request once, even if the server runs it again. Raises RateLimited above the tenant's limit."""
    if _RATE_LIMIT_STATE not in environ:
        environ[_RATE_LIMIT_STATE] = services().authenticator.count_request(principal)
    bucket: BucketState | None = environ[_RATE_LIMIT_STATE]
    if bucket is None:
        return
    after_this_request(lambda response: _with_rate_limit(response, bucket))
    if bucket.wait_seconds:
        raise RateLimited(bucket.size, bucket.wait_seconds)


def _with_rate_limit(response: Response, bucket: BucketState) -> Response:
    """Returns the response with the headers of draft-ietf-httpapi-ratelimit-headers."""
    response.headers["RateLimit-Policy"] = f'"tenant";q={bucket.size};w=1'
    response.headers["RateLimit"] = f'"tenant";r={bucket.remaining};t={bucket.full_in_seconds}'
    return response
