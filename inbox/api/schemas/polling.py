"""The forms of polls and of what settles a lease."""

from typing import Any

from marshmallow import Schema, ValidationError, post_load
from marshmallow.fields import UUID, List, String
from marshmallow.validate import Length, OneOf, Range

from inbox.api.examples import EVENT_ID, RECEIPT
from inbox.api.schemas.fields import (
    AT_MOST,
    DELAY_SECONDS,
    LEASE_SECONDS,
    HeaderText,
    JSONFlag,
    JSONWholeNumber,
    SmallBody,
    WholeNumber,
)
from inbox.domain.events import Order

MAX_POLL = 500
DEFAULT_POLL = 100
MAX_WAIT = 20
MAX_RECEIPTS = 500
_LONGEST_RECEIPT = 300
_OF_AN_EVENT = {"examples": [EVENT_ID]}
_LEASE_DEFAULT = "INBOX_LEASE_SECONDS where it is not given"


class PollParameters(Schema):
    mode = String(
        load_default="consume",
        validate=OneOf(["consume", "peek", "lease"]),
        metadata={
            "description": "`consume` marks the events delivered, `lease` hands them out for a while, each with a "
            "receipt, `peek` changes nothing.",
            # What *Try it out* starts with: executing it must not consume events.
            "example": "peek",
        },
    )
    limit = WholeNumber(load_default=DEFAULT_POLL, validate=Range(1, MAX_POLL), metadata=AT_MOST)
    order = String(
        load_default=Order.OLDEST,
        validate=OneOf([str(order) for order in Order]),
        metadata={"description": "`newest` turns the order round, with `mode=peek` only."},
    )
    lease_seconds = WholeNumber(
        validate=LEASE_SECONDS, metadata={"description": f"With `mode=lease` only; {_LEASE_DEFAULT}.", "examples": [60]}
    )
    wait = WholeNumber(
        load_default=0,
        validate=Range(0, MAX_WAIT),
        metadata={
            "description": "Holds an empty answer back until an event comes or the seconds are over. "
            "Behind Apache, lighttpd, Varnish, or HAProxy without `option abortonclose`, "
            "which do not tell the server that a client has disconnected, use `Inbox-Attempt` or `mode=lease`.",
            "examples": [20],
        },
    )

    @post_load
    def _fits_the_mode(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        if data["mode"] != "peek" and data["order"] != Order.OLDEST:
            raise ValidationError("Only mode=peek takes it.", "order")
        if data["mode"] != "lease" and "lease_seconds" in data:
            raise ValidationError("Only mode=lease takes it.", "lease_seconds")
        return data


class PollHeaders(Schema):
    attempt = HeaderText(
        data_key="Inbox-Attempt",
        validate=Length(1, 128),
        metadata={
            "description": "The same again within 5 minutes gets the same events again. Not with `mode=peek`.",
            "examples": ["6f1e0f0c-5d6b-4a53-9a0e-2f6f0b1c7d11"],
        },
    )


class ReceiptsBody(SmallBody):
    receipts = List(
        String(validate=Length(max=_LONGEST_RECEIPT)),
        required=True,
        validate=Length(1, MAX_RECEIPTS),
        metadata={"examples": [[RECEIPT]]},
    )


class ReleaseBody(ReceiptsBody):
    delay_seconds = JSONWholeNumber(
        load_default=0, validate=DELAY_SECONDS, metadata={"description": "How long nobody gets them.", "examples": [30]}
    )
    failed = JSONFlag(
        load_default=False,
        metadata={
            "description": "Counts as a lost lease: the last of INBOX_MAX_DELIVERIES makes the event dead at once.",
            "examples": [True],
        },
    )


class ExtendBody(ReceiptsBody):
    lease_seconds = JSONWholeNumber(
        validate=LEASE_SECONDS, metadata={"description": f"From now on; {_LEASE_DEFAULT}.", "examples": [60]}
    )


class _Settled(Schema):
    lost = List(String(), required=True, metadata={"description": "Receipts that hold no more.", "examples": [[]]})


class Acknowledged(_Settled):
    acknowledged = List(UUID(metadata=_OF_AN_EVENT), required=True)


class Released(_Settled):
    released = List(UUID(metadata=_OF_AN_EVENT), required=True)


class Extended(_Settled):
    extended = List(UUID(metadata=_OF_AN_EVENT), required=True)
