"""Moments as people and programs write them: epoch milliseconds, or ISO 8601. Pure."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

# No event is from before or after: what lies outside means the same as the end itself.
_FIRST_MS, _LAST_MS = 0, 9_999_999_999_999
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_timestamp(text: str) -> int | None:
    """Epoch milliseconds of what is written so, or in ISO 8601, in UTC where no offset is given; None for all else."""
    if re.fullmatch("[0-9]{1,15}", text, re.ASCII):
        return clamp_timestamp(int(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return clamp_timestamp(
        ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)
    )


def clamp_timestamp(timestamp_ms: int) -> int:
    return min(max(timestamp_ms, _FIRST_MS), _LAST_MS)


# Both remembered: the events of a page are delivered at one moment, and often came within one second.
@lru_cache(1024)
def format_timestamp(timestamp_ms: int) -> str:
    return f"{_second(timestamp_ms // 1000)}.{timestamp_ms % 1000:03}Z"


@lru_cache(1024)
def _second(timestamp_s: int) -> str:
    return datetime.fromtimestamp(timestamp_s, UTC).isoformat()[:19]
