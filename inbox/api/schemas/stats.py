"""Schemas of an inbox's statistics."""

from marshmallow import Schema
from marshmallow.fields import DateTime, Integer, List, Nested, String

from inbox.api.examples import EVENT_TYPE, STORED_AT, doc, example
from inbox.api.schemas.fields import Choice, InboxName, RequestSchema
from inbox.domain.events import DEFAULT_INBOX
from inbox.services.stats import Window

_HOUR_OF_STORED = "2026-11-16T01:00:00.000Z"


class StatsParameters(RequestSchema):
    inbox = InboxName()
    window = Choice(
        Window,
        load_default=Window.DAY,
        metadata=doc("The period of the totals: 24 hours, 7 days or 30 days. Includes the current hour or day."),
    )


class CountsOf(Schema):
    """Number of times each of these happened. An event that is leased twice counts twice."""

    received = Integer(required=True, metadata=example(40))
    delivered = Integer(required=True, metadata=example(38))
    leased = Integer(required=True, metadata=example(12))
    dead = Integer(required=True, metadata=example(0))
    replayed = Integer(required=True, metadata=example(1))
    bytes = Integer(required=True, metadata=doc("Size of the received payloads.", 2480))


class CountsOfType(CountsOf):
    event_type = String(
        required=True,
        allow_none=True,
        metadata=doc(
            "Null for events without a type. Each hour and day counts 50 types separately, and "
            "all others together as `*`.",
            EVENT_TYPE,
        ),
    )


class CountsFrom(CountsOf):
    start = DateTime(required=True, metadata=example(_HOUR_OF_STORED))


class InboxStats(Schema):
    inbox = String(required=True, metadata=example(DEFAULT_INBOX))
    window = String(required=True, metadata=example(Window.DAY))
    undelivered = Integer(required=True, metadata=doc("Number of events that a poll could return now.", 3))
    oldest_undelivered_at = DateTime(
        required=True, allow_none=True, metadata=doc("When the oldest of them was stored.", STORED_AT)
    )
    oldest_undelivered_age_seconds = Integer(required=True, allow_none=True, metadata=example(33))
    totals = Nested(CountsOf, required=True)
    event_types = List(Nested(CountsOfType), required=True, metadata=doc("Sorted by events received."))
    per_hour = List(Nested(CountsFrom), required=True, metadata=doc("The last 24 hours, or 72 for the longer windows."))
    per_day = List(Nested(CountsFrom), required=True, metadata=doc("The last 2, 7 or 30 days in UTC, oldest first."))
