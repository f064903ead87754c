"""What the holder of a receipt does with its event."""

from collections.abc import Mapping, Sequence

import apsw

from inbox.events import Receipt, Status
from inbox.store.sqlite.database import Database
from inbox.store.sqlite.rows import HELD, seconds

_UNDER_THIS_CLAIM = """
    tenant_id = :tenant_id AND event_id = :event_id AND inbox = :inbox AND claim_id = :claim_id
    AND expires_at_s > :now_s"""

_STILL_RUNNING = f"{_UNDER_THIS_CLAIM} AND status = 'leased' AND until_ms > :now_ms"

_ACKNOWLEDGE = f"""
    UPDATE events SET status = 'delivered', delivered_at_ms = :now_ms, until_ms = NULL WHERE {_STILL_RUNNING}"""

_IS_ACKNOWLEDGED = f"SELECT 1 FROM events WHERE {_UNDER_THIS_CLAIM} AND status = 'delivered'"

_RELEASE = f"UPDATE events SET status = :status, until_ms = :until_ms WHERE {_STILL_RUNNING}"

# Only a release leaves the claim on an undelivered event.
_IS_RELEASED = f"SELECT 1 FROM events WHERE {_UNDER_THIS_CLAIM} AND status IN ('undelivered', '{HELD}')"

_EXTEND = f"UPDATE events SET until_ms = :until_ms WHERE {_STILL_RUNNING}"

_NEVER = "SELECT 1 WHERE false"


class Leases:
    def __init__(self, database: Database) -> None:
        self._database = database

    def acknowledge(self, tenant_id: str, receipts: Sequence[Receipt], now_ms: int) -> list[bool]:
        return self._each(tenant_id, receipts, now_ms, {}, _ACKNOWLEDGE, _IS_ACKNOWLEDGED)

    def release(self, tenant_id: str, receipts: Sequence[Receipt], available_at_ms: int, now_ms: int) -> list[bool]:
        waits = available_at_ms > now_ms
        values = {"status": HELD if waits else Status.UNDELIVERED, "until_ms": available_at_ms if waits else None}
        return self._each(tenant_id, receipts, now_ms, values, _RELEASE, _IS_RELEASED)

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
        """For each receipt: whether the change was made, now or before."""
        moment = {"tenant_id": tenant_id, "now_ms": now_ms, "now_s": seconds(now_ms), **values}

        def act(connection: apsw.Connection) -> list[bool]:
            return [one(connection, receipt) for receipt in receipts]

        def one(connection: apsw.Connection, receipt: Receipt) -> bool:
            under = {**moment, "event_id": receipt.event_id, "inbox": receipt.inbox, "claim_id": receipt.claim_id}
            connection.execute(change, under)
            return connection.changes() == 1 or connection.execute(is_done, under).fetchone() is not None

        return self._database.write(act)
