"""Schemas of the registry of tenants."""

import re
from typing import Any

from marshmallow import Schema, ValidationError, post_load
from marshmallow.fields import Boolean, DateTime, Dict, Integer, List, Nested, String
from marshmallow.validate import OneOf

from inbox.api.examples import DELIVERED_AT, KEY_ID, STORED_AT, STORED_MS, doc, example
from inbox.api.schemas import fields
from inbox.domain.tenants import (
    EMAIL,
    MAX_RATE_LIMIT,
    TENANT_ID,
    TENANT_ID_RULE,
    AuditAction,
    TenantPosition,
    TenantSelection,
    TenantStatus,
    is_email,
)

MAX_PAGE = 100
DEFAULT_PAGE = 50
_NAME = "Acme Corp."
_EMAIL = "ops@acme.example"
_POSITION_EXAMPLE = f"{STORED_MS}.acme"


class Email(fields.Text):
    def __init__(self, **options: Any) -> None:
        super().__init__(metadata={"pattern": f"^{EMAIL}$", "examples": [_EMAIL]}, validate=_check_email, **options)


def _check_email(text: str) -> None:
    if not is_email(text):
        raise ValidationError("must be an email address")


class _Page(fields.RequestSchema):
    page_size = fields.WholeNumber(
        data_key="pageSize", load_default=DEFAULT_PAGE, validate=fields.between(1, MAX_PAGE), metadata=example(50)
    )


_POSITION = rf"([0-9]{{1,13}})\.({TENANT_ID})"


class Position(fields.Text):
    """The end of the previous page, in the form of `position_text`."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        match = re.fullmatch(_POSITION, value)
        if match is None:
            raise ValidationError("must be the `startAt` of a previous response")
        return TenantPosition(int(match[1]), match[2])


def position_text(position: TenantPosition) -> str:
    return f"{position.created_at_ms}.{position.tenant_id}"


class TenantListParameters(_Page):
    start_at = Position(
        data_key="startAt",
        metadata={
            "description": "The `startAt` of the previous page.",
            "pattern": f"^{_POSITION}$",
            "examples": [_POSITION_EXAMPLE],
        },
    )
    status = fields.Choice(TenantStatus)
    since_ms = fields.Timestamp("Only tenants created since this time, inclusive.", data_key="since")
    until_ms = fields.Timestamp("Only tenants created before this time.", DELIVERED_AT, data_key="until")
    include_inactive = fields.Flag(
        data_key="includeInactive", load_default=False, metadata=doc("Include deleted tenants.")
    )

    @post_load
    def _to_selection(self, data: dict[str, Any], **_: Any) -> tuple[TenantSelection, int, TenantPosition | None]:
        page_size, start_at = data.pop("page_size"), data.pop("start_at", None)
        return TenantSelection(**data), page_size, start_at


class AuditParameters(_Page):
    start_at = fields.WholeNumber(
        data_key="startAt",
        validate=fields.between(0, 999_999_999),
        metadata=doc("Only entries with a smaller number.", 2),
    )


class _TenantMembers(fields.SmallBody):
    organization_name = fields.Name(min_length=1, allow_none=True, metadata=example(_NAME))
    destination_email = Email(allow_none=True)
    rate_limit = fields.JSONWholeNumber(
        allow_none=True,
        validate=fields.between(0, MAX_RATE_LIMIT),
        metadata=doc("Requests per second; 0 for unlimited, null for the service's default.", 100),
    )


class NewTenantBody(_TenantMembers):
    tenant_id = fields.PatternText(
        TENANT_ID,
        f"must be {TENANT_ID_RULE}",
        allow_none=True,
        metadata=doc("Generated if omitted.", "acme"),
    )
    email = Email(required=True)


class TenantBody(_TenantMembers):
    email = Email()


class StatusBody(fields.SmallBody):
    status = fields.Choice(TenantStatus, required=True, metadata=example(TenantStatus.VALIDATED))
    force = fields.JSONFlag(load_default=False, metadata=doc("Allow any transition. The audit log records it."))


class RegisteredTenant(Schema):
    tenant_id = String(required=True, metadata=example("acme"))
    organization_name = String(required=True, allow_none=True, metadata=example(_NAME))
    email = String(required=True, allow_none=True, metadata=example(_EMAIL))
    destination_email = String(required=True, allow_none=True, metadata=example(_EMAIL))
    rate_limit = Integer(required=True, allow_none=True, metadata=example(100))
    status = fields.Choice(TenantStatus, required=True, metadata=example(TenantStatus.UNVALIDATED))
    status_before_suspension = String(
        validate=OneOf([status for status in TenantStatus if status != TenantStatus.SUSPENDED]),
        metadata=doc("Only while the tenant is SUSPENDED: the only status it can change to without `force`."),
    )
    active = Boolean(required=True, metadata=doc("False if the tenant is deleted.", True))
    date_created = DateTime(required=True, metadata=example(STORED_AT))
    date_last_updated = DateTime(required=True, metadata=example(DELIVERED_AT))
    last_updated_by = String(required=True, metadata=example(KEY_ID))


class TenantPage(Schema):
    tenants = List(Nested(RegisteredTenant), required=True)
    more_available = Boolean(data_key="moreAvailable", required=True, metadata=example(True))
    start_at = String(
        data_key="startAt",
        required=True,
        allow_none=True,
        metadata=doc("For the next page, or null.", _POSITION_EXAMPLE),
    )


class AuditDocument(Schema):
    number = Integer(required=True, metadata=example(2))
    at = DateTime(required=True, metadata=example(DELIVERED_AT))
    by = String(required=True, metadata=doc("A key ID, `cli` or `migration`.", KEY_ID))
    action = fields.Choice(AuditAction, required=True, metadata=example(AuditAction.STATUS_CHANGED))
    forced = Boolean(required=True, metadata=doc("True if the status change was forced.", False))
    changes = Dict(required=True, metadata=example({"status": {"from": "UNVALIDATED", "to": "VALIDATED"}}))
