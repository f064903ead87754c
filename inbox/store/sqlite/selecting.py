"""A selection of events as a statement that reads one index, in order and from where it begins.

Timestamps never fall along seq, so the order of time is the order of seq, and a place in it is the pair of both.
"""

import re
from collections.abc import Sequence

from inbox.domain.events import Order, Selection, Status
from inbox.errors import FieldError, InvalidRequest
from inbox.store.sqlite.rows import HELD, seconds

_LAST = 2**63 - 1
_POSITION = re.compile(r"(\d{1,19})-(\d{1,19})", re.ASCII)

STORED = {
    Status.UNDELIVERED: ("undelivered", HELD),
    Status.LEASED: ("leased",),
    Status.DELIVERED: ("delivered",),
    Status.DEAD: ("dead",),
}

_OF_INBOX = "tenant_id = :tenant_id AND inbox = :inbox"
_BEHIND = "(timestamp_ms, seq) > (:low_ms, :low_seq)"
_BEFORE = "(timestamp_ms, seq) < (:high_ms, :high_seq)"

# Within one status the index knows no times, only numbers.
_WITHIN_NUMBERS = f"""
    seq >= (SELECT seq FROM events INDEXED BY events_by_time WHERE {_OF_INBOX} AND {_BEHIND}
            ORDER BY timestamp_ms, seq LIMIT 1)
    AND seq <= (SELECT seq FROM events INDEXED BY events_by_time WHERE {_OF_INBOX} AND {_BEFORE}
            ORDER BY timestamp_ms DESC, seq DESC LIMIT 1)"""


def statement(columns: str, selection: Selection, statuses: Sequence[str] | None, order: Order) -> str:
    """Reads the selected rows in order; `statuses` are the stored ones, None for all."""
    direction = "ASC" if order is Order.OLDEST else "DESC"
    kept = f"{_OF_INBOX} AND expires_at_s > :now_s"
    if selection.event_type is not None:
        kept += " AND event_type = :event_type"
    if statuses is not None and (selection.event_type is None or _are_few(statuses)):
        # Each is in order by itself, and SQLite merges them.
        one = f"SELECT {columns} FROM events INDEXED BY events_by_status WHERE {kept} AND {_WITHIN_NUMBERS}"
        return " UNION ALL ".join(f"{one} AND status = '{status}'" for status in statuses) + f" ORDER BY 1 {direction}"
    if statuses is not None:
        kept += " AND status IN ('" + "', '".join(statuses) + "')"
    index = "events_by_time" if selection.event_type is None else "events_by_type"
    return f"""
        SELECT {columns} FROM events INDEXED BY {index} WHERE {kept} AND {_BEHIND} AND {_BEFORE}
        ORDER BY timestamp_ms {direction}, seq {direction}"""


def parameters(
    tenant_id: str, selection: Selection, order: Order, after: str | None, now_ms: int
) -> dict[str, str | int | None]:
    # No seq is below 0: these two are where a millisecond begins.
    low = (selection.since_ms or 0, -1)
    high = (_LAST if selection.until_ms is None else selection.until_ms, -1)
    if after is not None and order is Order.OLDEST:
        low = max(low, _place(after))
    elif after is not None:
        high = min(high, _place(after))
    return {
        "tenant_id": tenant_id,
        "inbox": selection.inbox,
        "event_type": selection.event_type,
        "now_s": seconds(now_ms),
        "low_ms": low[0],
        "low_seq": low[1],
        "high_ms": high[0],
        "high_seq": high[1],
    }


def position(timestamp_ms: int, seq: int) -> str:
    return f"{timestamp_ms}-{seq}"


def _place(after: str) -> tuple[int, int]:
    parts = _POSITION.fullmatch(after)
    if parts is None or max(map(int, parts.groups())) > _LAST:
        raise InvalidRequest([FieldError("/cursor", "This is no cursor that an earlier answer gave.")])
    return int(parts[1]), int(parts[2])


def _are_few(statuses: Sequence[str]) -> bool:
    """Fewer than there are events of one type, as a rule: then the status finds them sooner than the type."""
    return all(status in ("leased", "dead") for status in statuses)
