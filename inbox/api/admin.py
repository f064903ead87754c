"""/admin/tenants: the registry of tenants, for operators."""

from functools import partial
from typing import Any

from flask import Blueprint, Response

from inbox.api.authorization import principal
from inbox.api.endpoint import Endpoint, Success
from inbox.api.keys import create_granted_key, key_response
from inbox.api.problem_types import (
    ALREADY_EXISTS,
    EMAIL_TAKEN,
    INVALID_STATUS_TRANSITION,
    NOT_ALLOWED,
    NOT_FOUND,
    TOO_MANY_KEYS,
)
from inbox.api.responses import empty_response, json_response, next_page
from inbox.api.schemas import tenants as schemas
from inbox.api.schemas.keys import CreatedKey, KeyBody
from inbox.api.services import services
from inbox.domain.keys import Scope
from inbox.domain.tenants import TenantPosition, TenantSelection, audit_document, tenant_document

blueprint = Blueprint("admin", __name__)

_AdminEndpoint = partial(Endpoint, scopes=(Scope.ADMIN,), bypass_key_cache=True)
_TENANT = {200: Success(schemas.RegisteredTenant())}


@blueprint.get("/admin/tenants")
@_AdminEndpoint(
    query=schemas.TenantListParameters(),
    returns={200: Success(schemas.TenantPage(), "Newest first.", headers=("Link",))},
)
def list_tenants(query: tuple[TenantSelection, int, TenantPosition | None]) -> Response:
    """List tenants by status and date"""
    tenants, more = services().tenants.page(*query)
    start_at = schemas.position_text(tenants[-1].position) if more else None
    document = {"tenants": [tenant_document(tenant) for tenant in tenants], "moreAvailable": more, "startAt": start_at}
    return json_response(document, headers=next_page("startAt", start_at))


@blueprint.post("/admin/tenants")
@_AdminEndpoint(
    body=schemas.NewTenantBody(),
    returns={
        201: Success(schemas.RegisteredTenant(), "Created, with status UNVALIDATED.", headers=("Location",)),
        200: Success(schemas.RegisteredTenant(), "The existing tenant with this email address, unchanged."),
    },
    problems=(ALREADY_EXISTS, EMAIL_TAKEN),
)
def create_tenant(body: dict[str, Any]) -> Response:
    """Create a tenant, or find it by its email address"""
    tenant, new = services().tenants.find_or_create(principal().key_id, **body)
    if new:
        return json_response(tenant_document(tenant), 201, {"Location": f"/admin/tenants/{tenant.tenant_id}"})
    return json_response(tenant_document(tenant))


@blueprint.get("/admin/tenants/<tenant_id>")
@_AdminEndpoint(returns=_TENANT, problems=(NOT_FOUND,))
def get_tenant(tenant_id: str) -> Response:
    """Get a tenant, even a deleted one"""
    return json_response(tenant_document(services().tenants.get(tenant_id)))


@blueprint.patch("/admin/tenants/<tenant_id>")
@_AdminEndpoint(body=schemas.TenantBody(), returns=_TENANT, problems=(NOT_FOUND, EMAIL_TAKEN))
def update_tenant(tenant_id: str, body: dict[str, Any]) -> Response:
    """Change a tenant

    Changes the organization's name, the email addresses and the rate limit. Only the given members change; `null`
    clears a member.
    """
    return json_response(tenant_document(services().tenants.update(tenant_id, principal().key_id, **body)))


@blueprint.put("/admin/tenants/<tenant_id>/status")
@_AdminEndpoint(
    body=schemas.StatusBody(), returns=_TENANT, problems=(NOT_FOUND, INVALID_STATUS_TRANSITION, NOT_ALLOWED)
)
def set_tenant_status(tenant_id: str, body: dict[str, Any]) -> Response:
    """Change a tenant's status

    A tenant changes from UNVALIDATED to VALIDATED to REGISTERED, from each of these to SUSPENDED, and from SUSPENDED
    back to its previous status. `force` allows every other transition.
    """
    return json_response(tenant_document(services().tenants.set_status(tenant_id, principal().key_id, **body)))


@blueprint.delete("/admin/tenants/<tenant_id>")
@_AdminEndpoint(
    returns={204: Success(description="The tenant's keys stop working. None of its data is deleted.")},
    problems=(NOT_FOUND, NOT_ALLOWED),
)
def delete_tenant(tenant_id: str) -> Response:
    """Delete a tenant; it can be restored"""
    services().tenants.delete(tenant_id, principal().key_id)
    return empty_response()


@blueprint.post("/admin/tenants/<tenant_id>/restore")
@_AdminEndpoint(returns=_TENANT, problems=(NOT_FOUND,))
def restore_tenant(tenant_id: str) -> Response:
    """Restore a deleted tenant"""
    return json_response(tenant_document(services().tenants.restore(tenant_id, principal().key_id)))


@blueprint.get("/admin/tenants/<tenant_id>/audit")
@_AdminEndpoint(
    query=schemas.AuditParameters(),
    returns={200: Success(schemas.AuditDocument(many=True), "Newest first.", headers=("Link",))},
    problems=(NOT_FOUND,),
)
def list_tenant_audit(tenant_id: str, query: dict[str, Any]) -> Response:
    """List a tenant's audit log"""
    entries, more = services().tenants.audit(tenant_id, query["page_size"], query.get("start_at"))
    headers = next_page("startAt", str(entries[-1].number) if more else None)
    return json_response([audit_document(entry) for entry in entries], headers=headers)


@blueprint.post("/admin/tenants/<tenant_id>/keys")
@_AdminEndpoint(
    body=KeyBody(),
    returns={201: Success(CreatedKey(), "The key cannot be shown again.")},
    problems=(NOT_FOUND, TOO_MANY_KEYS, NOT_ALLOWED),
)
def create_key_for_tenant(tenant_id: str, body: dict[str, Any]) -> Response:
    """Create an API key for a tenant, such as its first"""
    new = create_granted_key(tenant_id, body)
    services().tenants.record_key_creation(tenant_id, principal().key_id, new.metadata.key_id)
    return key_response(new)
