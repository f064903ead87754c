"""Rows of the table `events`."""

from collections.abc import Iterable

from inbox.domain.events import Event, Lease, PageSize, Status
from inbox.store.sqlite.database import Row

DELAYED = "held"
"""The stored status of an event that was released with a delay. Clients see it as undelivered."""

_STATUSES = {DELAYED: Status.UNDELIVERED} | {str(status): status for status in Status}

COLUMNS = """
    seq, octet_length(payload), inbox, event_id, event_type, timestamp_ms, status, deliveries, lost_leases,
    delivered_at_ms, claim_id, until_ms, CAST(payload AS BLOB)"""
_PAYLOAD_BYTES, LOST_LEASES = 1, 8
"""Positions in COLUMNS."""


def fit_page(rows: Iterable[Row], size: PageSize) -> tuple[list[Row], bool]:
    """Returns the rows that fit on a page, at least one if there are any, and True if more follow.

    Each row starts with `seq` and the size of the payload, like COLUMNS.
    """
    page: list[Row] = []
    payload_bytes = 0
    for row in rows:
        if len(page) >= size.events or payload_bytes >= size.payload_bytes:
            return page, True
        page.append(row)
        payload_bytes += row[_PAYLOAD_BYTES]
    return page, False


def stored_event(row: Row) -> Event:
    _, _, inbox, event_id, event_type, timestamp_ms, status, deliveries, _, *times_and_payload = row
    delivered_at_ms, claim_id, until_ms, payload = times_and_payload
    return Event(
        event_id,
        event_type,
        timestamp_ms,
        _STATUSES[status],
        deliveries,
        delivered_at_ms,
        payload,
        inbox,
        Lease(claim_id, until_ms) if status == Status.LEASED else None,
    )


def seconds(now_ms: int) -> int:
    return now_ms // 1000
