"""Leases: acknowledged, released or extended with a receipt, or expired."""

from collections.abc import Callable, Mapping, Sequence

import apsw

from inbox.domain.events import Event, Receipt, Status
from inbox.domain.stats import DEAD, DELIVERED, NO_COUNTS, CountChanges, Counts
from inbox.store.sqlite.counters import count
from inbox.store.sqlite.database import Database, Row
from inbox.store.sqlite.group_commit import T, Transaction
from inbox.store.sqlite.inboxes import note_reopened
from inbox.store.sqlite.rows import DELAYED, LOST_LEASES, seconds, stored_event

_OF_CLAIM = """
    tenant_id = :tenant_id AND event_id = :event_id AND inbox = :inbox AND claim_id = :claim_id
    AND expires_at_s > :now_s"""

_LEASED = f"{_OF_CLAIM} AND status = 'leased' AND until_ms > :now_ms"

_ACKNOWLEDGE = f"""
    UPDATE events SET status = 'delivered', delivered_at_ms = :now_ms, until_ms = NULL WHERE {_LEASED}
    RETURNING event_type, status"""

_IS_ACKNOWLEDGED = f"SELECT 1 FROM events WHERE {_OF_CLAIM} AND status = 'delivered'"

_IS_LAST = "lost_leases + 1 >= :max_deliveries"

_RELEASE = f"""
    UPDATE events SET
        status = iif(:failed AND {_IS_LAST}, 'dead', :status),
        until_ms = iif(:failed AND {_IS_LAST}, NULL, :until_ms),
        lost_leases = lost_leases + :failed
    WHERE {_LEASED} RETURNING event_type, status"""

# Only a release leaves the claim on an undelivered or dead event.
_IS_RELEASED = f"SELECT 1 FROM events WHERE {_OF_CLAIM} AND status IN ('undelivered', '{DELAYED}', 'dead')"

_EXTEND = f"UPDATE events SET until_ms = :until_ms WHERE {_LEASED} RETURNING event_type, status"

_NEVER = "SELECT 1 WHERE false"

EXPIRED = """
    SELECT seq FROM events INDEXED BY events_by_end
    WHERE tenant_id = :tenant_id AND inbox = :inbox AND until_ms <= :now_ms"""
"""Selects events whose lease or delay has ended, but whose status has not changed yet."""

# Limits how long a transaction holds the write lock.
_MAX_EXPIRED = 1000

# A released event keeps its claim, so that a repeated release succeeds.
_EXPIRE = f"""
    UPDATE events SET
        status = CASE WHEN status = 'leased' AND {_IS_LAST} THEN 'dead' ELSE 'undelivered' END,
        lost_leases = lost_leases + (status = 'leased'),
        claim_id = CASE WHEN status = '{DELAYED}' THEN claim_id END,
        until_ms = NULL
    WHERE seq IN ({EXPIRED} LIMIT {_MAX_EXPIRED})
    RETURNING status, event_type"""

_COUNTED: dict[str, tuple[Counts, int]] = {
    Status.DELIVERED: (DELIVERED, 0),
    Status.DEAD: (DEAD, 0),
    Status.UNDELIVERED: (NO_COUNTS, 1),
}
"""By the new status: what is counted, and how many more events are undelivered."""


class Leases:
    def __init__(self, database: Database, max_deliveries: int) -> None:
        self._database = database
        self._max_deliveries = max_deliveries

    def acknowledge(self, tenant_id: str, receipts: Sequence[Receipt], now_ms: int) -> list[bool]:
        return self._update(tenant_id, receipts, now_ms, {}, _ACKNOWLEDGE, _IS_ACKNOWLEDGED)

    def release(
        self, tenant_id: str, receipts: Sequence[Receipt], available_at_ms: int, now_ms: int, *, failed: bool = False
    ) -> list[bool]:
        is_delayed = available_at_ms > now_ms
        values = {
            "status": DELAYED if is_delayed else Status.UNDELIVERED,
            "until_ms": available_at_ms if is_delayed else None,
            "failed": failed,
            "max_deliveries": self._max_deliveries,
        }
        return self._update(tenant_id, receipts, now_ms, values, _RELEASE, _IS_RELEASED)

    def extend(self, tenant_id: str, receipts: Sequence[Receipt], lease_until_ms: int, now_ms: int) -> list[bool]:
        return self._update(tenant_id, receipts, now_ms, {"until_ms": lease_until_ms}, _EXTEND, _NEVER)

    def _update(
        self,
        tenant_id: str,
        receipts: Sequence[Receipt],
        now_ms: int,
        values: Mapping[str, object],
        update: str,
        is_done: str,
    ) -> list[bool]:
        """Returns, for each receipt, True if the update was made, by this call or an earlier one."""
        common = {"tenant_id": tenant_id, "now_ms": now_ms, "now_s": seconds(now_ms), **values}

        def transaction(connection: apsw.Connection) -> list[bool]:
            changes, done = CountChanges(), []
            for receipt in receipts:
                of_receipt = {"event_id": receipt.event_id, "inbox": receipt.inbox, "claim_id": receipt.claim_id}
                parameters = {**common, **of_receipt}
                updated: list[Row] = connection.execute(update, parameters).fetchall()
                for event_type, status in updated:
                    changes.add(receipt.inbox, event_type, *_COUNTED.get(status, (NO_COUNTS, 0)))
                done.append(bool(updated) or connection.execute(is_done, parameters).fetchone() is not None)
            count(connection, tenant_id, now_ms, changes)
            note_reopened(connection, tenant_id, [inbox for inbox, more in changes.undelivered.items() if more])
            return done

        return self._database.write(transaction)

    def expire_leases(self, tenant_id: str, inbox: str, now_ms: int) -> None:
        """Writes the status of events whose lease or delay has ended. Takes the write lock only if there are any."""
        if self._database.read(f"{EXPIRED} LIMIT 1", {"tenant_id": tenant_id, "inbox": inbox, "now_ms": now_ms}):
            self.expire_and_write(tenant_id, inbox, now_ms, lambda _connection: None)

    def expire_and_write(self, tenant_id: str, inbox: str, now_ms: int, transaction: Transaction[T]) -> T:
        """Performs a transaction that relies on the stored status of the inbox's events."""
        parameters = {
            "tenant_id": tenant_id,
            "inbox": inbox,
            "now_ms": now_ms,
            "max_deliveries": self._max_deliveries,
        }

        def expire_first(connection: apsw.Connection) -> Callable[[], T] | None:
            expired: list[Row] = connection.execute(_EXPIRE, parameters).fetchall()
            changes = CountChanges()
            for status, event_type in expired:
                changes.add(inbox, event_type, *_COUNTED[status])
            count(connection, tenant_id, now_ms, changes)
            if len(expired) == _MAX_EXPIRED:
                return None
            result = transaction(connection)
            return lambda: result

        while (result := self._database.write(expire_first)) is None:
            pass
        return result()

    def current_event(self, row: Row, now_ms: int) -> Event:
        """Returns the event with the status it has at `now_ms`, even if that has not been written yet."""
        event, lost_leases = stored_event(row), row[LOST_LEASES]
        if event.lease is None or event.lease.expires_at_ms > now_ms:
            return event
        is_dead = lost_leases + 1 >= self._max_deliveries
        return event._replace(status=Status.DEAD if is_dead else Status.UNDELIVERED, lease=None)
