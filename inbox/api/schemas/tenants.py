"""The forms of the tenants' registry."""

import re
from typing import Any

from marshmallow import Schema, ValidationError, post_load
from marshmallow.fields import Boolean, DateTime, Dict, Enum, Integer, List, Nested, String
from marshmallow.validate import OneOf, Range

from inbox.api.examples import HANDED_OUT_AT, KEY_ID, STORED_AT, STORED_MS
from inbox.api.schemas.fields import Flag, FormedText, JSONFlag, JSONWholeNumber, Moment, Name, SmallBody, WholeNumber
from inbox.domain.tenants import (
    EMAIL,
    MAX_RATE_LIMIT,
    TENANT_ID,
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
_PLACED = f"{STORED_MS}.acme"
_STATUSES = [str(status) for status in TenantStatus]


class Email(String):
    def __init__(self, **options: Any) -> None:
        super().__init__(
            metadata={"pattern": f"^{EMAIL}$", "examples": [_EMAIL]},
            validate=_check_email,
            **options,
        )


def _check_email(text: str) -> None:
    if not is_email(text):
        raise ValidationError("Has to be an e-mail address.")


class _Page(Schema):
    page_size = WholeNumber(
        data_key="pageSize", load_default=DEFAULT_PAGE, validate=Range(1, MAX_PAGE), metadata={"examples": [50]}
    )


_PLACE = rf"([0-9]{{1,13}})\.({TENANT_ID})"


class Place(String):
    """Where the page before has ended."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        match = re.fullmatch(_PLACE, value)
        if match is None:
            raise ValidationError("Has to come out of an earlier answer.")
        return TenantPosition(int(match[1]), match[2])


def place_text(place: TenantPosition) -> str:
    return f"{place.created_at_ms}.{place.tenant_id}"


class TenantListParameters(_Page):
    start_at = Place(
        data_key="startAt",
        metadata={
            "description": "The `startAt` of the answer before.",
            "pattern": f"^{_PLACE}$",
            "examples": [_PLACED],
        },
    )
    status = Enum(TenantStatus, by_value=String)
    since_ms = Moment("Created from this time on.", data_key="since")
    until_ms = Moment("Created before this time.", HANDED_OUT_AT, data_key="until")
    include_inactive = Flag(
        data_key="includeInactive", load_default=False, metadata={"description": "Deleted ones too."}
    )

    @post_load
    def _selection(self, data: dict[str, Any], **_: Any) -> tuple[TenantSelection, int, TenantPosition | None]:
        page_size, start_at = data.pop("page_size"), data.pop("start_at", None)
        return TenantSelection(**data), page_size, start_at


class AuditParameters(_Page):
    start_at = WholeNumber(
        data_key="startAt",
        validate=Range(0, 999_999_999),
        metadata={"description": "Only entries with numbers below this.", "examples": [2]},
    )


class _TenantMembers(SmallBody):
    organization_name = Name(least=1, allow_none=True, metadata={"examples": [_NAME]})
    destination_email = Email(allow_none=True)
    rate_limit = JSONWholeNumber(
        allow_none=True,
        validate=Range(0, MAX_RATE_LIMIT),
        metadata={"description": "Requests a second; 0 is no limit, null the service's own.", "examples": [100]},
    )


class NewTenantBody(_TenantMembers):
    tenant_id = FormedText(
        TENANT_ID,
        "Has to be 1 to 63 letters, digits, dots, underscores and hyphens, the first a letter or digit.",
        allow_none=True,
        metadata={"description": "Without it the tenant gets one.", "examples": ["acme"]},
    )
    email = Email(required=True)


class TenantBody(_TenantMembers):
    email = Email()


class StatusBody(SmallBody):
    status = Enum(TenantStatus, by_value=String, required=True, metadata={"examples": [str(TenantStatus.VALIDATED)]})
    force = JSONFlag(
        load_default=False, metadata={"description": "Allows every other transition; the audit log shows it."}
    )


class RegisteredTenant(Schema):
    tenant_id = String(required=True, metadata={"examples": ["acme"]})
    organization_name = String(required=True, allow_none=True, metadata={"examples": [_NAME]})
    email = String(required=True, allow_none=True, metadata={"examples": [_EMAIL]})
    destination_email = String(required=True, allow_none=True, metadata={"examples": [_EMAIL]})
    rate_limit = Integer(required=True, allow_none=True, metadata={"examples": [100]})
    status = String(required=True, validate=OneOf(_STATUSES), metadata={"examples": [str(TenantStatus.UNVALIDATED)]})
    status_before_suspension = String(
        validate=OneOf([status for status in _STATUSES if status != TenantStatus.SUSPENDED]),
        metadata={
            "description": "Only while the tenant is SUSPENDED: the one status that it can change to without `force`."
        },
    )
    active = Boolean(required=True, metadata={"description": "False while it is deleted.", "examples": [True]})
    date_created = DateTime(required=True, metadata={"examples": [STORED_AT]})
    date_last_updated = DateTime(required=True, metadata={"examples": [HANDED_OUT_AT]})
    last_updated_by = String(required=True, metadata={"examples": [KEY_ID]})


class TenantPage(Schema):
    tenants = List(Nested(RegisteredTenant), required=True)
    more_available = Boolean(data_key="moreAvailable", required=True, metadata={"examples": [True]})
    start_at = String(
        data_key="startAt",
        required=True,
        allow_none=True,
        metadata={"description": "For the next page, if any.", "examples": [_PLACED]},
    )


class AuditDocument(Schema):
    number = Integer(required=True, metadata={"examples": [2]})
    at = DateTime(required=True, metadata={"examples": [HANDED_OUT_AT]})
    by = String(required=True, metadata={"description": "The id of a key, `cli` or `migration`.", "examples": [KEY_ID]})
    action = String(
        required=True,
        validate=OneOf([str(action) for action in AuditAction]),
        metadata={"examples": [str(AuditAction.STATUS_CHANGED)]},
    )
    forced = Boolean(
        required=True, metadata={"description": "True if the status changed by force.", "examples": [False]}
    )
    changes = Dict(required=True, metadata={"examples": [{"status": {"from": "UNVALIDATED", "to": "VALIDATED"}}]})
