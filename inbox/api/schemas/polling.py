"""Schemas of polls, and of acknowledging, releasing and extending leases."""

from typing import Any

from marshmallow import Schema, ValidationError, post_load
from marshmallow.fields import UUID, List, String
from marshmallow.validate import Length

from inbox.api.examples import EVENT_ID, RECEIPT, doc, example
from inbox.api.schemas import fields
from inbox.domain.events import Order

MAX_POLL = 500
DEFAULT_POLL = 100
MAX_WAIT = 20
MAX_RECEIPTS = 500
_MAX_RECEIPT = 300
_EVENT_ID = {"examples": [EVENT_ID]}
_LEASE_DEFAULT = "the default is INBOX_LEASE_SECONDS"


class PollParameters(fields.RequestSchema):
    mode = fields.Text(
        load_default="consume",
        validate=fields.one_of(["consume", "peek", "lease"]),
        metadata={
            "description": "`consume` marks the returned events delivered, `lease` leases them and adds a receipt to "
            "each, `peek` changes nothing.",
            # *Try it out* starts with this value, so that it consumes no events.
            "example": "peek",
        },
    )
    limit = fields.WholeNumber(load_default=DEFAULT_POLL, validate=fields.between(1, MAX_POLL), metadata=fields.LIMIT)
    order = fields.Choice(Order, load_default=Order.OLDEST, metadata=doc("`newest` is only allowed with `mode=peek`."))
    lease_seconds = fields.WholeNumber(
        validate=fields.LEASE_SECONDS, metadata=doc(f"Only with `mode=lease`; {_LEASE_DEFAULT}.", 60)
    )
    wait = fields.WholeNumber(
        load_default=0,
        validate=fields.between(0, MAX_WAIT),
        metadata=doc(
            "Long poll: if the inbox is empty, waits up to this many seconds for an event. "
            "Behind Apache, lighttpd, Varnish, or HAProxy without `option abortonclose`, "
            "which do not tell the server that a client has disconnected, use `Inbox-Attempt` or `mode=lease`.",
            20,
        ),
    )

    @post_load
    def _check_mode(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        if data["mode"] != "peek" and data["order"] != Order.OLDEST:
            raise ValidationError("is only allowed with mode=peek", "order")
        if data["mode"] != "lease" and "lease_seconds" in data:
            raise ValidationError("is only allowed with mode=lease", "lease_seconds")
        return data


class PollHeaders(fields.RequestSchema):
    attempt = fields.HeaderText(
        data_key="Inbox-Attempt",
        validate=fields.length(1, 128),
        metadata=doc(
            "Repeating it within 5 minutes returns the same events again. Not with `mode=peek`.",
            "6f1e0f0c-5d6b-4a53-9a0e-2f6f0b1c7d11",
        ),
    )


class ReceiptsBody(fields.SmallBody):
    receipts = fields.Array(
        fields.Text(validate=Length(max=_MAX_RECEIPT, error="must have up to {max} characters")),
        required=True,
        validate=fields.entries(1, MAX_RECEIPTS),
        metadata=example([RECEIPT]),
    )


class ReleaseBody(ReceiptsBody):
    delay_seconds = fields.JSONWholeNumber(
        load_default=0, validate=fields.DELAY_SECONDS, metadata=doc("No poll returns the events for this long.", 30)
    )
    failed = fields.JSONFlag(
        load_default=False,
        metadata=doc(
            "The events could not be processed. This counts as a lost lease: after "
            "INBOX_MAX_DELIVERIES of them an event is dead.",
            True,
        ),
    )


class ExtendBody(ReceiptsBody):
    lease_seconds = fields.JSONWholeNumber(
        validate=fields.LEASE_SECONDS, metadata=doc(f"Counted from now; {_LEASE_DEFAULT}.", 60)
    )


class _Settled(Schema):
    lost = List(String(), required=True, metadata=doc("Expired or unknown receipts.", []))


class Acknowledged(_Settled):
    acknowledged = List(UUID(metadata=_EVENT_ID), required=True)


class Released(_Settled):
    released = List(UUID(metadata=_EVENT_ID), required=True)


class Extended(_Settled):
    extended = List(UUID(metadata=_EVENT_ID), required=True)
