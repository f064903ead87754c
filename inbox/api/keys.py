"""/keys: a tenant's own API keys."""

from collections.abc import Collection
from functools import partial
from typing import Any

from flask import Blueprint, Response

from inbox.api.authorization import missing_scope, principal
from inbox.api.endpoint import Endpoint, Success
from inbox.api.problem_types import NOT_ALLOWED, NOT_FOUND, TOO_MANY_KEYS
from inbox.api.responses import empty_response, json_response
from inbox.api.schemas.keys import AboutKey, CreatedKey, KeyBody, RotateBody
from inbox.api.services import services
from inbox.domain.keys import Scope, key_document
from inbox.services.keys import NewKey

blueprint = Blueprint("keys", __name__)

_KeyEndpoint = partial(Endpoint, scopes=(Scope.TENANT_MANAGE,), bypass_key_cache=True)


@blueprint.get("/keys")
@_KeyEndpoint(returns={200: Success(AboutKey(many=True), "Oldest first, including revoked and expired keys.")})
def list_keys() -> Response:
    """List the API keys, without the keys themselves"""
    return json_response([key_document(key) for key in services().keys.list(principal().tenant_id)])


@blueprint.post("/keys")
@_KeyEndpoint(
    body=KeyBody(),
    returns={201: Success(CreatedKey(), "The key cannot be shown again.")},
    problems=(TOO_MANY_KEYS, NOT_ALLOWED),
)
def create_key(body: dict[str, Any]) -> Response:
    """Create an API key"""
    return key_response(create_granted_key(principal().tenant_id, body))


@blueprint.delete("/keys/<key_id>")
@_KeyEndpoint(
    returns={204: Success(description="The key stops working, in all processes within INBOX_KEY_CACHE_SECONDS.")},
    problems=(NOT_FOUND,),
)
def revoke_key(key_id: str) -> Response:
    """Revoke an API key; safe to repeat"""
    _check_grant_of(key_id)
    services().keys.revoke(key_id)
    return empty_response()


@blueprint.post("/keys/<key_id>/rotate")
@_KeyEndpoint(
    body=RotateBody(),
    returns={201: Success(CreatedKey(), "The new key. The old one works for `overlap_seconds` more.")},
    problems=(NOT_FOUND, TOO_MANY_KEYS, NOT_ALLOWED),
)
def rotate_key(key_id: str, body: dict[str, Any]) -> Response:
    """Replace an API key by a new one

    The new key has the same name, scopes and lifetime. The old one keeps working for `overlap_seconds`, but never
    beyond its own expiry.
    """
    _check_grant_of(key_id)
    return key_response(services().keys.rotate(key_id, body["overlap_seconds"]))


def create_granted_key(tenant_id: str, body: dict[str, Any]) -> NewKey:
    """Creates a key. Raises ProblemError if it would have the scope admin and the request's key does not."""
    _check_grant(body["scopes"])
    return services().keys.create(tenant_id, **body)


def key_response(new: NewKey) -> Response:
    return json_response({**key_document(new.metadata), "key": new.key}, 201)


def _check_grant_of(key_id: str) -> None:
    _check_grant(services().keys.get_own(principal().tenant_id, key_id).scopes)


def _check_grant(scopes: Collection[Scope]) -> None:
    # Otherwise a key that manages the keys of the tenant `system` could give itself the scope admin.
    if Scope.ADMIN in scopes and Scope.ADMIN not in principal().scopes:
        raise missing_scope(Scope.ADMIN)
