"""Leases: settled by a receipt, or expired."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import apsw

from inbox.domain import stats
from inbox.domain.events import Event, Receipt, Status
from inbox.domain.stats import DEAD, DELIVERED, NO_COUNTS, CountChanges, Counts
from inbox.store.sqlite.count_updates import count
from inbox.store.sqlite.database import Database, Row
from inbox.store.sqlite.group_commit import Act
from inbox.store.sqlite.inboxes import note_reopened
from inbox.store.sqlite.rows import HELD, as_stored, seconds

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


T = TypeVar("T")

# So many in one transaction, which everybody else waits for.
_AT_ONCE = 1000

RUN_OUT = """
    SELECT seq FROM events INDEXED BY events_by_end
    WHERE tenant_id = :tenant_id AND inbox = :inbox AND until_ms <= :now_ms"""

# Who released an event stays known, so that releasing it again is no surprise; who lost it has nothing to do with it.
_SETTLE = f"""
    UPDATE events SET
        status = CASE WHEN status = 'leased' AND lost_leases + 1 >= :max_deliveries THEN 'dead' ELSE 'undelivered' END,
        lost_leases = lost_leases + (status = 'leased'),
        claim_id = CASE WHEN status = 'held' THEN claim_id END,
        until_ms = NULL
    WHERE seq IN ({RUN_OUT} LIMIT {_AT_ONCE})
    RETURNING status, event_type"""


class Settling:
    def __init__(self, database: Database, max_deliveries: int) -> None:
        self._database = database
        self.max_deliveries = max_deliveries

    def write(self, tenant_id: str, inbox: str, now_ms: int, act: Act[T]) -> T:
        """Performs the act where nothing in the inbox has run out but is not written down."""
        place = {"tenant_id": tenant_id, "inbox": inbox, "now_ms": now_ms, "max_deliveries": self.max_deliveries}

        def settle_and_act(connection: apsw.Connection) -> Callable[[], T] | None:
            settled: list[Row] = connection.execute(_SETTLE, place).fetchall()
            changes = CountChanges()
            for status, event_type in settled:
                if status == Status.DEAD:
                    changes.add(inbox, event_type, stats.DEAD)
                else:
                    changes.add(inbox, event_type, stats.NO_COUNTS, 1)
            count(connection, tenant_id, now_ms, changes)
            if len(settled) == _AT_ONCE:
                return None
            outcome = act(connection)
            return lambda: outcome

        while (outcome := self._database.write(settle_and_act)) is None:
            pass
        return outcome()

    def before_reading(self, tenant_id: str, inbox: str, now_ms: int) -> None:
        """Takes the write lock only where something has run out."""
        if self._database.read(f"{RUN_OUT} LIMIT 1", {"tenant_id": tenant_id, "inbox": inbox, "now_ms": now_ms}):
            self.write(tenant_id, inbox, now_ms, lambda _connection: None)

    def shown(self, row: Row, now_ms: int) -> Event:
        """The event as the clock has it, whatever is written down."""
        event, lost_leases = as_stored(row), row[8]
        if event.lease is None or event.lease.expires_at_ms > now_ms:
            return event
        dead = lost_leases + 1 >= self.max_deliveries
        return event._replace(status=Status.DEAD if dead else Status.UNDELIVERED, lease=None)
