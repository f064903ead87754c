"""What the holder of a receipt does with its event."""

from collections.abc import Mapping, Sequence

import apsw

from inbox.domain.events import Receipt, Status
from inbox.domain.stats import DEAD, DELIVERED, NO_COUNTS, CountChanges, Counts
from inbox.store.sqlite.counting import count
from inbox.store.sqlite.database import Database, Row
from inbox.store.sqlite.reopened_inboxes import note_reopened
from inbox.store.sqlite.rows import HELD, seconds

_UNDER_THIS_CLAIM = """
    tenant_id = :tenant_id AND event_id = :event_id AND inbox = :inbox AND claim_id = :claim_id
    AND expires_at_s > :now_s"""

_STILL_RUNNING = f"{_UNDER_THIS_CLAIM} AND status = 'leased' AND until_ms > :now_ms"

_ACKNOWLEDGE = f"""
    UPDATE events SET status = 'delivered', delivered_at_ms = :now_ms, until_ms = NULL WHERE {_STILL_RUNNING}
    RETURNING event_type, status"""

_IS_ACKNOWLEDGED = f"SELECT 1 FROM events WHERE {_UNDER_THIS_CLAIM} AND status = 'delivered'"

_RELEASE = f"""
    UPDATE events SET status = :status, until_ms = :until_ms WHERE {_STILL_RUNNING} RETURNING event_type, status"""

_IS_LAST = "lost_leases + 1 >= :max_deliveries"

_FAIL = f"""
    UPDATE events SET
        status = CASE WHEN {_IS_LAST} THEN 'dead' ELSE :status END,
        until_ms = CASE WHEN NOT {_IS_LAST} THEN :until_ms END,
        lost_leases = lost_leases + 1
    WHERE {_STILL_RUNNING} RETURNING event_type, status"""

# Only a release leaves the claim on an undelivered or dead event.
_IS_RELEASED = f"SELECT 1 FROM events WHERE {_UNDER_THIS_CLAIM} AND status IN ('undelivered', '{HELD}', 'dead')"

_EXTEND = f"UPDATE events SET until_ms = :until_ms WHERE {_STILL_RUNNING} RETURNING event_type, status"

_NEVER = "SELECT 1 WHERE false"

_COUNTED: dict[str, tuple[Counts, int]] = {
    Status.DELIVERED: (DELIVERED, 0),
    Status.DEAD: (DEAD, 0),
    Status.UNDELIVERED: (NO_COUNTS, 1),
}
"""By the stored status that a change results in: what is counted, and how many more events a claim could take."""


class Leases:
    def __init__(self, database: Database, max_deliveries: int) -> None:
        self._database = database
        self._max_deliveries = max_deliveries

    def acknowledge(self, tenant_id: str, receipts: Sequence[Receipt], now_ms: int) -> list[bool]:
        return self._each(tenant_id, receipts, now_ms, {}, _ACKNOWLEDGE, _IS_ACKNOWLEDGED)

    def release(
        self, tenant_id: str, receipts: Sequence[Receipt], available_at_ms: int, now_ms: int, *, failed: bool = False
    ) -> list[bool]:
        waits = available_at_ms > now_ms
        values = {
            "status": HELD if waits else Status.UNDELIVERED,
            "until_ms": available_at_ms if waits else None,
            "max_deliveries": self._max_deliveries,
        }
        return self._each(tenant_id, receipts, now_ms, values, _FAIL if failed else _RELEASE, _IS_RELEASED)

    def extend(self, tenant_id: str, receipts: Sequence[Receipt], lease_until_ms: int, now_ms: int) -> list[bool]:
        return self._each(tenant_id, receipts, now_ms, {"until_ms": lease_until_ms}, _EXTEND, _NEVER)

    def _each(
        self,
        tenant_id: str,
        receipts: Sequence[Receipt],
        now_ms: int,
        values: Mapping[str, object],
        change: str,
        is_done: str,
    ) -> list[bool]:
        """Returns, for each receipt, True if the change was made, by this call or an earlier one."""
        moment = {"tenant_id": tenant_id, "now_ms": now_ms, "now_s": seconds(now_ms), **values}

        def act(connection: apsw.Connection) -> list[bool]:
            changes = CountChanges()
            done = [one(connection, receipt, changes) for receipt in receipts]
            count(connection, tenant_id, now_ms, changes)
            note_reopened(connection, tenant_id, [inbox for inbox, more in changes.undelivered.items() if more])
            return done

        def one(connection: apsw.Connection, receipt: Receipt, changes: CountChanges) -> bool:
            under = {**moment, "event_id": receipt.event_id, "inbox": receipt.inbox, "claim_id": receipt.claim_id}
            changed: list[Row] = connection.execute(change, under).fetchall()
            for event_type, status in changed:
                changes.add(receipt.inbox, event_type, *_COUNTED.get(status, (NO_COUNTS, 0)))
            return bool(changed) or connection.execute(is_done, under).fetchone() is not None

        return self._database.write(act)
