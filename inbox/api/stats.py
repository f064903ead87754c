"""/stats: figures of an inbox."""

from typing import Any

from flask import Response

from inbox.api.auth import principal, requires
from inbox.api.openapi import Blueprint
from inbox.api.responses import json_answer
from inbox.api.schemas.stats import InboxStats, StatsParameters
from inbox.api.services import services
from inbox.domain.keys import Scope
from inbox.domain.stats import Counts, Span
from inbox.domain.timestamps import format_timestamp

blueprint = Blueprint("stats", __name__, description="What waits, and what became of events.")


@blueprint.route("/stats", methods=["GET"])
@requires(Scope.EVENTS_READ, Scope.INBOX_READ)
@blueprint.arguments(StatsParameters(), location="query")
@blueprint.response(200, InboxStats)
@blueprint.refusals(401, 403, 404, 422, 503)
def stats(parameters: dict[str, Any]) -> Response:
    """Figures of an inbox: what waits now, and counts by hour, day and type

    They are kept as events move, so asking costs next to nothing, however many there are. On DynamoDB counts may be a
    minute old, and `undelivered` is exact up to 500.
    """
    inbox, window = parameters["inbox"], parameters["window"]
    figures = services().stats.get(principal().tenant_id, inbox, window)
    oldest_ms = figures.undelivered.oldest_ms
    return json_answer(
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
