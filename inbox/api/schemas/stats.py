"""The forms of an inbox's figures."""

from marshmallow import Schema
from marshmallow.fields import DateTime, Enum, Integer, List, Nested, String

from inbox.api.examples import EVENT_TYPE, STORED_AT
from inbox.api.schemas.fields import InboxName
from inbox.domain.events import DEFAULT_INBOX
from inbox.services.stats import Window

_HOUR_OF_STORED = "2026-11-16T01:00:00.000Z"


class StatsParameters(Schema):
    inbox = InboxName()
    window = Enum(
        Window,
        by_value=String,
        load_default=Window.DAY,
        metadata={"description": "What totals are taken of: 24 hours, 7 days or 30, the current one the last of them."},
    )


class CountsOf(Schema):
    """How often each thing happened. An event that is leased twice counts twice."""

    received = Integer(required=True, metadata={"examples": [40]})
    delivered = Integer(required=True, metadata={"examples": [38]})
    leased = Integer(required=True, metadata={"examples": [12]})
    dead = Integer(required=True, metadata={"examples": [0]})
    replayed = Integer(required=True, metadata={"examples": [1]})
    bytes = Integer(required=True, metadata={"description": "Of the payloads received.", "examples": [2480]})


class CountsOfType(CountsOf):
    event_type = String(
        required=True,
        allow_none=True,
        metadata={
            "description": "Null for events that have none. An hour or a day has 50 types each by itself, and the "
            "further ones together as `*`.",
            "examples": [EVENT_TYPE],
        },
    )


class CountsFrom(CountsOf):
    start = DateTime(required=True, metadata={"examples": [_HOUR_OF_STORED]})


class InboxStats(Schema):
    inbox = String(required=True, metadata={"examples": [DEFAULT_INBOX]})
    window = String(required=True, metadata={"examples": [str(Window.DAY)]})
    undelivered = Integer(
        required=True, metadata={"description": "How many events a poll could get now.", "examples": [3]}
    )
    oldest_undelivered_at = DateTime(
        required=True,
        allow_none=True,
        metadata={"description": "When the oldest of them came.", "examples": [STORED_AT]},
    )
    oldest_undelivered_age_seconds = Integer(required=True, allow_none=True, metadata={"examples": [33]})
    totals = Nested(CountsOf, required=True)
    event_types = List(Nested(CountsOfType), required=True, metadata={"description": "The most received first."})
    per_hour = List(
        Nested(CountsFrom), required=True, metadata={"description": "The last 24 hours, or 72 with the longer windows."}
    )
    per_day = List(
        Nested(CountsFrom),
        required=True,
        metadata={"description": "The last 2, 7 or 30 days, in UTC, the oldest first."},
    )
