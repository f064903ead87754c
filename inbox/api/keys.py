"""/keys: a tenant's own keys."""

from collections.abc import Collection
from typing import Any

from flask import Response

from inbox.api.auth import missing_scope, principal, requires
from inbox.api.openapi import Blueprint
from inbox.api.problem_types import NOT_ALLOWED, NOT_JSON, TOO_MANY_KEYS
from inbox.api.responses import empty_answer, json_answer
from inbox.api.schemas.fields import NoParameters
from inbox.api.schemas.keys import AboutKey, CreatedKey, KeyBody, RotateBody
from inbox.api.services import services
from inbox.domain.keys import Scope, key_document
from inbox.services.keys import NewKey

blueprint = Blueprint("keys", __name__, description="The tenant's own keys.")


@blueprint.route("/keys", methods=["GET"])
@requires(Scope.TENANT_MANAGE, bypass_cache=True)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.response(200, AboutKey(many=True), description="The oldest first, those that no longer work too.")
@blueprint.refusals(401, 403, 422, 503)
def list_keys(_parameters: dict[str, Any]) -> Response:
    """List what is known of the keys, never the keys themselves"""
    return json_answer([key_document(key) for key in services().keys.list(principal().tenant_id)])


@blueprint.route("/keys", methods=["POST"])
@requires(Scope.TENANT_MANAGE, bypass_cache=True)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.arguments(KeyBody())
@blueprint.response(201, CreatedKey, description="The key is shown this once.")
@blueprint.refusals(NOT_JSON, 401, 403, TOO_MANY_KEYS, NOT_ALLOWED, 413, 415, 422, 503)
def create_key(_parameters: dict[str, Any], body: dict[str, Any]) -> Response:
    """Make a key"""
    return shown_once(new_key(principal().tenant_id, body))


@blueprint.route("/keys/<key_id>", methods=["DELETE"])
@requires(Scope.TENANT_MANAGE, bypass_cache=True)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.response(204, description="It is refused from now on, everywhere within INBOX_KEY_CACHE_SECONDS.")
@blueprint.refusals(401, 403, 404, 422, 503)
def revoke_key(_parameters: dict[str, Any], key_id: str) -> Response:
    """Revoke a key; safe to repeat"""
    _require_power_over(key_id)
    services().keys.revoke(key_id)
    return empty_answer()


@blueprint.route("/keys/<key_id>/rotate", methods=["POST"])
@requires(Scope.TENANT_MANAGE, bypass_cache=True)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.arguments(RotateBody())
@blueprint.response(201, CreatedKey, description="A key like the old one, which works for a while longer.")
@blueprint.refusals(NOT_JSON, 401, 403, 404, TOO_MANY_KEYS, NOT_ALLOWED, 413, 415, 422, 503)
def rotate_key(_parameters: dict[str, Any], body: dict[str, Any], key_id: str) -> Response:
    """Make a key in the place of another

    With the same name, scopes and length of life. The old one goes on working for `overlap_seconds`, and no longer than
    it would have anyway.
    """
    _require_power_over(key_id)
    return shown_once(services().keys.rotate(key_id, body["overlap_seconds"]))


def new_key(tenant_id: str, body: dict[str, Any]) -> NewKey:
    _require_grant(body["scopes"])
    return services().keys.create(tenant_id, **body)


def shown_once(new: NewKey) -> Response:
    return json_answer({**key_document(new.metadata), "key": new.key}, 201)


def _require_power_over(key_id: str) -> None:
    _require_grant(services().keys.get_own(principal().tenant_id, key_id).scopes)


def _require_grant(scopes: Collection[Scope]) -> None:
    """Who manages the keys of the tenant `system` is not an admin by that."""
    if Scope.ADMIN in scopes and Scope.ADMIN not in principal().scopes:
        raise missing_scope(Scope.ADMIN)
