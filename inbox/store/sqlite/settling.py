"""Leases and delays that have run out: written down before anybody counts on a stored status."""

from collections.abc import Callable
from typing import TypeVar

import apsw

from inbox.domain import stats
from inbox.domain.events import Event, Status
from inbox.domain.stats import CountChanges
from inbox.store.sqlite.counting import count
from inbox.store.sqlite.database import Database, Row
from inbox.store.sqlite.group_commit import Act
from inbox.store.sqlite.rows import as_stored

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
