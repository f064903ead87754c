"""Timestamps as text: epoch milliseconds or ISO 8601. Pure."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

# Timestamps outside this range are clamped: no event is earlier or later.
_FIRST_MS, _LAST_MS = 0, 9_999_999_999_999
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_timestamp(text: str) -> int | None:
    """Returns epoch milliseconds. ISO 8601 without an offset is UTC. Returns None if `text` is neither."""
    if re.fullmatch("[0-9]{1,15}", text, re.ASCII):
        return _clamp(int(text))
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    in_utc = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return _clamp((in_utc - _EPOCH) // timedelta(milliseconds=1))


def _clamp(timestamp_ms: int) -> int:
    return min(max(timestamp_ms, _FIRST_MS), _LAST_MS)


# Both are cached: the events of a page share a delivery time, and often the second of their timestamps.
@lru_cache(1024)
def format_timestamp(timestamp_ms: int) -> str:
    return f"{_second(timestamp_ms // 1000)}.{timestamp_ms % 1000:03}Z"


@lru_cache(1024)
def _second(timestamp_s: int) -> str:
    return datetime.fromtimestamp(timestamp_s, UTC).isoformat()[:19]
