"""/stats: statistics of an inbox."""

from typing import Any

from flask import Blueprint, Response

from inbox.api.authorization import principal
from inbox.api.endpoint import Endpoint, Success
from inbox.api.problem_types import NOT_FOUND
from inbox.api.responses import json_response
from inbox.api.schemas.stats import InboxStats, StatsParameters
from inbox.api.services import services
from inbox.domain.keys import Scope
from inbox.domain.stats import Counts, Span
from inbox.domain.timestamps import format_timestamp

blueprint = Blueprint("stats", __name__)


@blueprint.get("/stats")
@Endpoint(
    scopes=(Scope.EVENTS_READ, Scope.INBOX_READ),
    query=StatsParameters(),
    returns={200: Success(InboxStats())},
    problems=(NOT_FOUND,),
)
def stats(query: dict[str, Any]) -> Response:
    """Get statistics of an inbox

    The number of undelivered events, and counts by hour, day and event type. They are updated as events change, so the
    request is cheap for any number of events. On DynamoDB the counts may be a minute old, and `undelivered` is
    exact up to 500.
    """
    inbox, window = query["inbox"], query["window"]
    figures = services().stats.get(principal().tenant_id, inbox, window)
    oldest_ms = figures.undelivered.oldest_ms
    return json_response(
        {
            "inbox": inbox,
            "window": window,
            "undelivered": figures.undelivered.count,
            "oldest_undelivered_at": None if oldest_ms is None else format_timestamp(oldest_ms),
            "oldest_undelivered_age_seconds": figures.oldest_age_seconds,
            "totals": figures.totals._asdict(),
            "event_types": [{"event_type": event_type, **counts._asdict()} for event_type, counts in figures.by_type],
            "per_hour": _series(figures.per[Span.HOUR]),
            "per_day": _series(figures.per[Span.DAY]),
        }
    )


def _series(counts: list[tuple[int, Counts]]) -> list[dict[str, Any]]:
    return [{"start": format_timestamp(start_ms), **each._asdict()} for start_ms, each in counts]
