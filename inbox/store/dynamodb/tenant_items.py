"""Tenants and their audit trails as items, and back."""

from typing import Any

from authorizer.items import number_in
from inbox.domain.tenants import AuditAction, AuditEntry, Change, Tenant, TenantStatus, email_key
from inbox.domain.timestamps import format_timestamp, parse_timestamp
from inbox.store.dynamodb.layout import Item, active_key, audit_key, number, text
from inbox.store.dynamodb.transactions import optional


def attributes_of(tenant: Tenant) -> dict[str, Any]:
    """All that a change may write; the item's key and `shards` are apart."""
    key = email_key_of(tenant)
    return {
        "tenant_id": text(tenant.tenant_id),
        "organization_name": optional(text, tenant.organization_name),
        # As it is compared, so that EmailIndex finds it however it is written.
        "email": optional(text, key),
        "email_as_given": optional(text, None if tenant.email == key else tenant.email),
        "destination_email": optional(text, tenant.destination_email),
        "rate_limit": optional(number, tenant.rate_limit),
        "status": text(tenant.status),
        "status_before_suspension": optional(text, tenant.status_before_suspension),
        "active": text(active_key(tenant.active)),
        "date_created": text(format_timestamp(tenant.created_at_ms)),
        "date_last_updated": text(format_timestamp(tenant.updated_at_ms)),
        "last_updated_by": text(tenant.updated_by),
        "version": number(tenant.version),
    }


def email_key_of(tenant: Tenant) -> str | None:
    return None if tenant.email is None else email_key(tenant.email)


def to_tenant(item: Item) -> Tenant:
    before = _text_in(item, "status_before_suspension")
    return Tenant(
        tenant_id=item["tenant_id"]["S"],
        organization_name=_text_in(item, "organization_name"),
        email=_text_in(item, "email_as_given") or _text_in(item, "email"),
        destination_email=_text_in(item, "destination_email"),
        rate_limit=number_in(item, "rate_limit"),
        status=TenantStatus(item["status"]["S"]),
        status_before_suspension=None if before is None else TenantStatus(before),
        active=item["active"]["S"] == active_key(True),
        created_at_ms=_moment_in(item, "date_created"),
        updated_at_ms=_moment_in(item, "date_last_updated"),
        updated_by=item["last_updated_by"]["S"],
        version=int(item["version"]["N"]),
    )


def audit_item(tenant_id: str, entry: AuditEntry) -> dict[str, Any]:
    """None of its attributes has the name of an index's key: entries are found among the tenant's own items alone."""
    changes = {
        member: {"L": [_to_attribute(change.before), _to_attribute(change.after)]}
        for member, change in entry.changes.items()
    }
    return {
        **audit_key(tenant_id, entry.number),
        "number": number(entry.number),
        "date": text(format_timestamp(entry.at_ms)),
        "by": text(entry.by),
        "action": text(entry.action),
        "changes": {"M": changes},
        "forced": {"BOOL": entry.forced},
    }


def to_audit_entry(item: Item) -> AuditEntry:
    return AuditEntry(
        number=int(item["number"]["N"]),
        at_ms=_moment_in(item, "date"),
        by=item["by"]["S"],
        action=AuditAction(item["action"]["S"]),
        changes={
            member: Change(*(_from_attribute(value) for value in change["L"]))
            for member, change in item["changes"]["M"].items()
        },
        forced=item["forced"]["BOOL"],
    )


def _to_attribute(value: str | int | None) -> dict[str, Any]:
    match value:
        case None:
            return {"NULL": True}
        # A boolean is an int to Python, and no number to DynamoDB.
        case bool():
            return {"BOOL": value}
        case int():
            return number(value)
        case str():
            return text(value)


def _from_attribute(attribute: Item) -> str | int | None:
    ((kind, value),) = attribute.items()
    match kind:
        case "NULL":
            return None
        case "N":
            return int(value)
        case _:
            known: str | int = value
            return known


def _text_in(item: Item, attribute: str) -> str | None:
    return item[attribute]["S"] if attribute in item else None


def _moment_in(item: Item, attribute: str) -> int:
    moment = parse_timestamp(item[attribute]["S"])
    if moment is None:
        raise ValueError(f"{attribute} is no moment")
    return moment
