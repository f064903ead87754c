"""Tenants and keys as the API and the commands show them."""

from typing import Any

from inbox.domain.tenants import ApiKey, AuditEntry, Tenant, TenantStatus
from inbox.domain.timestamps import format_timestamp


def key_document(key: ApiKey) -> dict[str, Any]:
    return {
        "key_id": key.key_id,
        "name": key.name,
        "hint": key.hint,
        "scopes": sorted(key.scopes),
        "status": key.status,
        "created_at": format_timestamp(key.created_at_ms),
        "last_used_at": _iso_or_none(key.last_used_at_ms),
        "expires_at": _iso_or_none(key.expires_at_ms),
    }


def tenant_document(tenant: Tenant) -> dict[str, Any]:
    document = {
        "tenant_id": tenant.tenant_id,
        "organization_name": tenant.organization_name,
        "email": tenant.email,
        "destination_email": tenant.destination_email,
        "rate_limit": tenant.rate_limit,
        "status": tenant.status,
        "active": tenant.active,
        "date_created": format_timestamp(tenant.created_at_ms),
        "date_last_updated": format_timestamp(tenant.updated_at_ms),
        "last_updated_by": tenant.updated_by,
    }
    if tenant.status is TenantStatus.SUSPENDED:
        document["status_before_suspension"] = tenant.status_after_resume
    return document


def audit_document(entry: AuditEntry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "at": format_timestamp(entry.at_ms),
        "by": entry.by,
        "action": entry.action,
        "forced": entry.forced,
        "changes": {name: {"from": change.before, "to": change.after} for name, change in entry.changes.items()},
    }


def _iso_or_none(timestamp_ms: int | None) -> str | None:
    return None if timestamp_ms is None else format_timestamp(timestamp_ms)
