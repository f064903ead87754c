"""Polls: which undelivered events a peek or a claim returns, and claims that a client repeats."""

import json
import uuid
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import apsw

from inbox.domain import stats
from inbox.domain.events import ATTEMPT_MS, Order, Page, PageSize, Status, attempt_digest
from inbox.store.sqlite.counters import count_each
from inbox.store.sqlite.database import Row
from inbox.store.sqlite.leases import EXPIRED, Leases
from inbox.store.sqlite.rows import COLUMNS, fit_page, seconds, stored_event

_ELIGIBLE = """
    FROM events INDEXED BY events_by_status
    WHERE tenant_id = :tenant_id AND inbox = :inbox AND status = 'undelivered' AND expires_at_s > :now_s"""

_HAS_ELIGIBLE = f"SELECT EXISTS (SELECT 1 {_ELIGIBLE})"

_PEEK = {
    Order.OLDEST: f"SELECT {COLUMNS} {_ELIGIBLE} ORDER BY timestamp_ms, seq",
    Order.NEWEST: f"SELECT {COLUMNS} {_ELIGIBLE} ORDER BY timestamp_ms DESC, seq DESC",
}

_OLDEST = f"SELECT seq, octet_length(payload) {_ELIGIBLE} ORDER BY timestamp_ms, seq"

_CLAIM = """
    UPDATE events SET
        status = :status, deliveries = deliveries + 1, delivered_at_ms = :delivered_at_ms,
        claim_id = :claim_id, until_ms = :until_ms
    WHERE seq IN (SELECT value FROM json_each(:seqs)) RETURNING event_type"""

_CLAIMED = f"SELECT {COLUMNS} FROM events WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY timestamp_ms, seq"

_ATTEMPT = f"""
    SELECT claim_ids, seqs FROM attempts
    WHERE tenant_id = :tenant_id AND inbox = :inbox AND attempt = :attempt AND at_ms > :now_ms - {ATTEMPT_MS}"""

_INSERT_ATTEMPT = """
    INSERT OR REPLACE INTO attempts (tenant_id, inbox, attempt, at_ms, claim_ids, seqs)
    VALUES (:tenant_id, :inbox, :attempt, :now_ms, :claim_ids, :seqs)"""

_UPDATE_ATTEMPT = """
    UPDATE attempts SET claim_ids = :claim_ids
    WHERE tenant_id = :tenant_id AND inbox = :inbox AND attempt = :attempt"""

_PURGE_ATTEMPTS = f"""
    DELETE FROM attempts WHERE (tenant_id, inbox, attempt) IN (
        SELECT tenant_id, inbox, attempt FROM attempts WHERE at_ms <= ? - {ATTEMPT_MS} LIMIT ?)"""

_OF_ATTEMPT = """
    SELECT seq, status, claim_id FROM events
    WHERE seq IN (SELECT value FROM json_each(:seqs)) AND expires_at_s > :now_s"""

_NEEDS_WRITE = f"SELECT EXISTS (SELECT 1 {_ELIGIBLE}) OR EXISTS ({EXPIRED}) OR EXISTS ({_ATTEMPT})"

_ClaimedRows = tuple[list[Row], bool]
"""The rows, and True if there are more."""


class Claims(Leases):
    def peek(self, tenant_id: str, inbox: str, order: Order, size: PageSize, now_ms: int) -> Page:
        self.expire_leases(tenant_id, inbox, now_ms)
        parameters = {"tenant_id": tenant_id, "inbox": inbox, "now_s": seconds(now_ms)}
        rows, more = self._database.scan(_PEEK[order], parameters, lambda rows: fit_page(rows, size))
        return Page([stored_event(row) for row in rows], more)

    def claim(
        self,
        tenant_id: str,
        inbox: str,
        size: PageSize,
        now_ms: int,
        lease_until_ms: int | None = None,
        attempt: str | None = None,
    ) -> Page:
        parameters: dict[str, Any] = {
            "tenant_id": tenant_id,
            "inbox": inbox,
            "attempt": None if attempt is None else attempt_digest(attempt),
            "now_ms": now_ms,
            "now_s": seconds(now_ms),
        }
        # Most polls find nothing, and finding nothing needs no write lock.
        if not self._database.read(_NEEDS_WRITE, parameters)[0][0]:
            return Page([], more=False)
        parameters |= {
            "status": Status.DELIVERED if lease_until_ms is None else Status.LEASED,
            "delivered_at_ms": now_ms if lease_until_ms is None else None,
            "claim_id": uuid.uuid4().hex,
            "until_ms": lease_until_ms,
        }

        def transaction(connection: apsw.Connection) -> _ClaimedRows:
            row = None if attempt is None else connection.execute(_ATTEMPT, parameters).fetchone()
            return (
                _repeat(connection, parameters, *map(json.loads, row)) if row else _claim(connection, parameters, size)
            )

        rows, more = self.expire_and_write(tenant_id, inbox, now_ms, transaction)
        # Outside of the transaction, so that no other thread waits for it.
        return Page([stored_event(row) for row in rows], more)


def _claim(connection: apsw.Connection, parameters: dict[str, Any], size: PageSize) -> _ClaimedRows:
    with closing(connection.execute(_OLDEST, parameters)) as rows:
        page, more = fit_page(rows, size)
    seqs = [row[0] for row in page]
    _mark(connection, parameters, seqs)
    if seqs and parameters["attempt"] is not None:
        claim_ids = json.dumps([parameters["claim_id"]])
        connection.execute(_INSERT_ATTEMPT, {**parameters, "claim_ids": claim_ids, "seqs": json.dumps(seqs)})
    return _rows(connection, seqs), more


def _repeat(
    connection: apsw.Connection, parameters: dict[str, Any], claim_ids: Sequence[str], seqs: Sequence[int]
) -> _ClaimedRows:
    """Repeats a claim. `seqs` are the events of the first claim; `claim_ids` name that claim and its repeats."""
    rows: list[Row] = connection.execute(_OF_ATTEMPT, {**parameters, "seqs": json.dumps(seqs)}).fetchall()
    held = (Status.LEASED, Status.DELIVERED)
    unchanged = [seq for seq, status, claim_id in rows if status in held and claim_id in claim_ids]
    undelivered = [seq for seq, status, _ in rows if status == Status.UNDELIVERED]
    if undelivered:
        _mark(connection, parameters, undelivered)
        all_claim_ids = json.dumps([*claim_ids, parameters["claim_id"]])
        connection.execute(_UPDATE_ATTEMPT, {**parameters, "claim_ids": all_claim_ids})
    more = connection.execute(_HAS_ELIGIBLE, parameters).fetchone() == (True,)
    return _rows(connection, [*unchanged, *undelivered]), more


def _mark(connection: apsw.Connection, parameters: dict[str, Any], seqs: Sequence[int]) -> None:
    claimed: list[Row] = connection.execute(_CLAIM, {**parameters, "seqs": json.dumps(seqs)}).fetchall()
    counts = stats.LEASED if parameters["status"] is Status.LEASED else stats.DELIVERED
    count_each(connection, parameters["tenant_id"], parameters["inbox"], parameters["now_ms"], claimed, counts, -1)


def _rows(connection: apsw.Connection, seqs: Sequence[int]) -> list[Row]:
    rows: list[Row] = connection.execute(_CLAIMED, (json.dumps(seqs),)).fetchall()
    return rows


def purge_attempts(connection: apsw.Connection, now_ms: int, limit: int) -> int:
    connection.execute(_PURGE_ATTEMPTS, (now_ms, limit))
    return connection.changes()
