"""A row of the table `events`, as an event and as a part of a page."""

from collections.abc import Iterable

from inbox.domain.events import Event, Lease, PageSize, Status
from inbox.store.sqlite.database import Row

HELD = "held"
"""Released, and undelivered as soon as its delay is over."""

_SHOWN = {HELD: Status.UNDELIVERED} | {str(status): status for status in Status}

# The number and the payload's size come first, as `fitting` wants them.
COLUMNS = """
    seq, octet_length(payload), inbox, event_id, event_type, timestamp_ms, status, deliveries, lost_leases,
    delivered_at_ms, claim_id, until_ms, CAST(payload AS BLOB)"""


def fitting(rows: Iterable[Row], size: PageSize) -> tuple[list[Row], bool]:
    """The rows that go on a page, and whether any are left.

    Always the first, and no further one once those before it are large enough.
    """
    fit: list[Row] = []
    payload_bytes = 0
    for row in rows:
        if len(fit) >= size.events or payload_bytes >= size.payload_bytes:
            return fit, True
        fit.append(row)
        payload_bytes += row[1]
    return fit, False


def as_stored(row: Row) -> Event:
    (
        _,
        _,
        inbox,
        event_id,
        event_type,
        timestamp_ms,
        status,
        deliveries,
        _,
        delivered_at_ms,
        claim_id,
        until_ms,
        payload,
    ) = row
    return Event(
        event_id,
        event_type,
        timestamp_ms,
        _SHOWN[status],
        deliveries,
        delivered_at_ms,
        payload,
        inbox,
        Lease(claim_id, until_ms) if status == Status.LEASED else None,
    )


def seconds(now_ms: int) -> int:
    return now_ms // 1000
