"""/admin/tenants: the registry, for whoever runs the service."""

from typing import Any

from flask import Response

from inbox.api.auth import principal, requires
from inbox.api.keys import new_key, shown_once
from inbox.api.openapi import Blueprint
from inbox.api.problem_types import ALREADY_EXISTS, EMAIL_TAKEN, NOT_ALLOWED, NOT_JSON, TOO_MANY_KEYS, WRONG_STEP
from inbox.api.response_headers import LOCATION, NEXT
from inbox.api.responses import empty_answer, json_answer, next_page
from inbox.api.schemas.fields import NoParameters
from inbox.api.schemas.keys import CreatedKey, KeyBody
from inbox.api.schemas.tenants import (
    AuditDocument,
    AuditParameters,
    NewTenantBody,
    RegisteredTenant,
    StatusBody,
    TenantBody,
    TenantListParameters,
    TenantPage,
    place_text,
)
from inbox.api.services import services
from inbox.domain.keys import Scope
from inbox.domain.tenants import TenantPosition, TenantSelection, audit_document, tenant_document

blueprint = Blueprint("admin", __name__, description="The registry of tenants.")


@blueprint.route("/admin/tenants", methods=["GET"])
@requires(Scope.ADMIN, bypass_cache=True)
@blueprint.arguments(TenantListParameters(), location="query")
@blueprint.response(200, TenantPage, description="Newest first.", headers=NEXT)
@blueprint.refusals(401, 403, 422, 503)
def list_tenants(parameters: tuple[TenantSelection, int, TenantPosition | None]) -> Response:
    """List tenants by status and date"""
    tenants, more = services().tenants.page(*parameters)
    start_at = place_text(tenants[-1].position) if more else None
    document = {
        "tenants": [tenant_document(tenant) for tenant in tenants],
        "moreAvailable": more,
        "startAt": start_at,
    }
    return json_answer(document, headers=next_page("startAt", start_at))


@blueprint.route("/admin/tenants", methods=["POST"])
@requires(Scope.ADMIN, bypass_cache=True)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.arguments(NewTenantBody())
@blueprint.response(201, RegisteredTenant, description="It is new, and UNVALIDATED.", headers=LOCATION)
@blueprint.response(200, RegisteredTenant, description="The tenant that has this e-mail already, as it is.")
@blueprint.refusals(NOT_JSON, 401, 403, ALREADY_EXISTS, EMAIL_TAKEN, 413, 415, 422, 503)
def create_tenant(_parameters: dict[str, Any], body: dict[str, Any]) -> Response:
    """Make a tenant, or find it by its e-mail"""
    tenant, new = services().tenants.find_or_create(principal().key_id, **body)
    if new:
        return json_answer(tenant_document(tenant), 201, {"Location": f"/admin/tenants/{tenant.tenant_id}"})
    return json_answer(tenant_document(tenant))


@blueprint.route("/admin/tenants/<tenant_id>", methods=["GET"])
@requires(Scope.ADMIN, bypass_cache=True)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.response(200, RegisteredTenant)
@blueprint.refusals(401, 403, 404, 422, 503)
def get_tenant(_parameters: dict[str, Any], tenant_id: str) -> Response:
    """Look at a tenant, a deleted one too"""
    return json_answer(tenant_document(services().tenants.get(tenant_id)))


@blueprint.route("/admin/tenants/<tenant_id>", methods=["PATCH"])
@requires(Scope.ADMIN, bypass_cache=True)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.arguments(TenantBody())
@blueprint.response(200, RegisteredTenant)
@blueprint.refusals(NOT_JSON, 401, 403, 404, EMAIL_TAKEN, 413, 415, 422, 503)
def update_tenant(_parameters: dict[str, Any], body: dict[str, Any], tenant_id: str) -> Response:
    """Change a tenant

    What it is called, where it is written to, and how much it may do: what is given is changed, `null` takes it away.
    """
    return json_answer(tenant_document(services().tenants.update(tenant_id, principal().key_id, **body)))


@blueprint.route("/admin/tenants/<tenant_id>/status", methods=["PUT"])
@requires(Scope.ADMIN, bypass_cache=True)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.arguments(StatusBody())
@blueprint.response(200, RegisteredTenant)
@blueprint.refusals(NOT_JSON, 401, 403, 404, WRONG_STEP, NOT_ALLOWED, 413, 415, 422, 503)
def set_tenant_status(_parameters: dict[str, Any], body: dict[str, Any], tenant_id: str) -> Response:
    """Change a tenant's status

    UNVALIDATED to VALIDATED to REGISTERED; from each of them to SUSPENDED, and from there back to the status before.
    `force` allows every other transition.
    """
    return json_answer(tenant_document(services().tenants.set_status(tenant_id, principal().key_id, **body)))


@blueprint.route("/admin/tenants/<tenant_id>", methods=["DELETE"])
@requires(Scope.ADMIN, bypass_cache=True)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.response(204, description="Its keys no longer work; nothing of it is removed.")
@blueprint.refusals(401, 403, 404, NOT_ALLOWED, 422, 503)
def delete_tenant(_parameters: dict[str, Any], tenant_id: str) -> Response:
    """Delete a tenant, until it is restored"""
    services().tenants.delete(tenant_id, principal().key_id)
    return empty_answer()


@blueprint.route("/admin/tenants/<tenant_id>/restore", methods=["POST"])
@requires(Scope.ADMIN, bypass_cache=True)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.response(200, RegisteredTenant)
@blueprint.refusals(401, 403, 404, 422, 503)
def restore_tenant(_parameters: dict[str, Any], tenant_id: str) -> Response:
    """Restore a deleted tenant"""
    return json_answer(tenant_document(services().tenants.restore(tenant_id, principal().key_id)))


@blueprint.route("/admin/tenants/<tenant_id>/audit", methods=["GET"])
@requires(Scope.ADMIN, bypass_cache=True)
@blueprint.arguments(AuditParameters(), location="query")
@blueprint.response(200, AuditDocument(many=True), description="Newest first.", headers=NEXT)
@blueprint.refusals(401, 403, 404, 422, 503)
def list_tenant_audit(parameters: dict[str, Any], tenant_id: str) -> Response:
    """See who changed a tenant, and when and how"""
    entries, more = services().tenants.audit(tenant_id, parameters["page_size"], parameters.get("start_at"))
    headers = next_page("startAt", str(entries[-1].number) if more else None)
    return json_answer([audit_document(entry) for entry in entries], headers=headers)


@blueprint.route("/admin/tenants/<tenant_id>/keys", methods=["POST"])
@requires(Scope.ADMIN, bypass_cache=True)
@blueprint.arguments(NoParameters(), location="query")
@blueprint.arguments(KeyBody())
@blueprint.response(201, CreatedKey, description="The key is shown this once.")
@blueprint.refusals(NOT_JSON, 401, 403, 404, TOO_MANY_KEYS, NOT_ALLOWED, 413, 415, 422, 503)
def create_key_for_tenant(_parameters: dict[str, Any], body: dict[str, Any], tenant_id: str) -> Response:
    """Make a key for a tenant: its first, with which it can make others"""
    new = new_key(tenant_id, body)
    services().tenants.record_key_creation(tenant_id, principal().key_id, new.metadata.key_id)
    return shown_once(new)
