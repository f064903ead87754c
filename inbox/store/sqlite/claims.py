"""Peeks and claims of undelivered events, and claims that a client repeats."""

import json
import uuid
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import apsw

from inbox.domain import exact_json, stats
from inbox.domain.events import ATTEMPT_MS, Order, Page, PageSize, Status, attempt_digest
from inbox.store.sqlite.count_updates import count_each
from inbox.store.sqlite.database import Database, Row
from inbox.store.sqlite.leases import RUN_OUT, Settling
from inbox.store.sqlite.rows import COLUMNS, as_stored, fitting, seconds

KNOWN_ATTEMPT = f"""
    SELECT claim_ids, seqs FROM attempts
    WHERE tenant_id = :tenant_id AND inbox = :inbox AND attempt = :attempt AND at_ms > :now_ms - {ATTEMPT_MS}"""

_REMEMBER = """
    INSERT OR REPLACE INTO attempts (tenant_id, inbox, attempt, at_ms, claim_ids, seqs)
    VALUES (:tenant_id, :inbox, :attempt, :now_ms, :claim_ids, :seqs)"""

_ADD_CLAIM = """
    UPDATE attempts SET claim_ids = :claim_ids
    WHERE tenant_id = :tenant_id AND inbox = :inbox AND attempt = :attempt"""

_PURGE_ATTEMPTS = f"""
    DELETE FROM attempts WHERE (tenant_id, inbox, attempt) IN (
        SELECT tenant_id, inbox, attempt FROM attempts WHERE at_ms <= ? - {ATTEMPT_MS} LIMIT ?)"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The rows that the first claim took, and the ids of that claim and of those that took some of them anew."""

    claim_ids: list[str]
    seqs: list[int]


def find_attempt(connection: apsw.Connection, place: dict[str, Any]) -> Attempt | None:
    found = connection.execute(KNOWN_ATTEMPT, place).fetchone()
    return Attempt(*map(json.loads, found)) if found else None


def remember_attempt(connection: apsw.Connection, place: dict[str, Any], attempt: Attempt) -> None:
    connection.execute(
        _REMEMBER, {**place, "claim_ids": json.dumps(attempt.claim_ids), "seqs": json.dumps(attempt.seqs)}
    )


def add_claim(connection: apsw.Connection, place: dict[str, Any], attempt: Attempt, claim_id: str) -> None:
    connection.execute(_ADD_CLAIM, {**place, "claim_ids": json.dumps([*attempt.claim_ids, claim_id])})


def purge_attempts(connection: apsw.Connection, now_ms: int, limit: int) -> int:
    connection.execute(_PURGE_ATTEMPTS, (now_ms, limit))
    return connection.changes()


_ELIGIBLE = """
    FROM events INDEXED BY events_by_status
    WHERE tenant_id = :tenant_id AND inbox = :inbox AND status = 'undelivered' AND expires_at_s > :now_s"""

_ANY_ELIGIBLE = f"SELECT EXISTS (SELECT 1 {_ELIGIBLE})"

_ANYTHING_TO_DO = f"""
    SELECT EXISTS (SELECT 1 {_ELIGIBLE}) OR EXISTS ({RUN_OUT}) OR EXISTS ({KNOWN_ATTEMPT})"""

_PEEK = {
    Order.OLDEST: f"SELECT {COLUMNS} {_ELIGIBLE} ORDER BY seq",
    Order.NEWEST: f"SELECT {COLUMNS} {_ELIGIBLE} ORDER BY seq DESC",
}

_OLDEST = f"SELECT seq, octet_length(payload) {_ELIGIBLE} ORDER BY seq"

_TAKE = """
    UPDATE events SET
        status = :status, deliveries = deliveries + 1, delivered_at_ms = :delivered_at_ms,
        claim_id = :claim_id, until_ms = :until_ms
    WHERE seq IN (SELECT value FROM json_each(:seqs)) RETURNING event_type"""

_FIRST_ANSWER = """
    SELECT seq, status, claim_id FROM events
    WHERE seq IN (SELECT value FROM json_each(:seqs)) AND expires_at_s > :now_s"""

_THESE = f"SELECT {COLUMNS} FROM events WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq"

_Taken = tuple[list[Row], bool]
"""The rows, and whether there are more."""


class Claiming:
    def __init__(self, database: Database, settling: Settling) -> None:
        self._database = database
        self._settling = settling

    def peek(self, tenant_id: str, inbox: str, order: Order, size: PageSize, now_ms: int) -> Page:
        self._settling.before_reading(tenant_id, inbox, now_ms)
        place = {"tenant_id": tenant_id, "inbox": inbox, "now_s": seconds(now_ms)}
        rows, more = self._database.scan(_PEEK[order], place, lambda rows: fitting(rows, size))
        return Page([as_stored(row) for row in rows], more)

    def claim(
        self,
        tenant_id: str,
        inbox: str,
        size: PageSize,
        now_ms: int,
        lease_until_ms: int | None,
        attempt: str | None,
    ) -> Page:
        place = {
            "tenant_id": tenant_id,
            "inbox": inbox,
            "attempt": None if attempt is None else attempt_digest(attempt),
            "now_ms": now_ms,
            "now_s": seconds(now_ms),
        }
        # Most polls find nothing, and finding nothing needs no write lock.
        if not self._database.read(_ANYTHING_TO_DO, place)[0][0]:
            return Page([], more=False)
        hands = {
            "status": Status.DELIVERED if lease_until_ms is None else Status.LEASED,
            "delivered_at_ms": now_ms if lease_until_ms is None else None,
            "claim_id": uuid.uuid4().hex,
            "until_ms": lease_until_ms,
        }

        def act(connection: apsw.Connection) -> _Taken:
            first = find_attempt(connection, place) if attempt is not None else None
            return _claim(connection, place, hands, size) if first is None else _again(connection, place, hands, first)

        rows, more = self._settling.write(tenant_id, inbox, now_ms, act)
        # Only now, when nobody waits for the database any more.
        return Page([as_stored(row) for row in rows], more)


def _claim(connection: apsw.Connection, place: dict[str, Any], hands: dict[str, Any], size: PageSize) -> _Taken:
    with closing(connection.execute(_OLDEST, place)) as rows:
        fit, more = fitting(rows, size)
    seqs = [row[0] for row in fit]
    _take(connection, place, hands, seqs)
    if seqs and place["attempt"] is not None:
        remember_attempt(connection, place, Attempt([hands["claim_id"]], seqs))
    return _these(connection, seqs), more


def _again(connection: apsw.Connection, place: dict[str, Any], hands: dict[str, Any], first: Attempt) -> _Taken:
    rows: list[Row] = connection.execute(_FIRST_ANSWER, {**place, "seqs": _json(first.seqs)}).fetchall()
    kept = [
        seq
        for seq, status, claim_id in rows
        if status in (Status.LEASED, Status.DELIVERED) and claim_id in first.claim_ids
    ]
    anew = [seq for seq, status, _ in rows if status == Status.UNDELIVERED]
    if anew:
        _take(connection, place, hands, anew)
        add_claim(connection, place, first, hands["claim_id"])
    more = connection.execute(_ANY_ELIGIBLE, place).fetchone() == (True,)
    return _these(connection, [*kept, *anew]), more


def _take(connection: apsw.Connection, place: dict[str, Any], hands: dict[str, Any], seqs: Sequence[int]) -> None:
    taken: list[Row] = connection.execute(_TAKE, {**hands, "seqs": _json(seqs)}).fetchall()
    outcome = stats.LEASED if hands["status"] is Status.LEASED else stats.DELIVERED
    count_each(connection, place["tenant_id"], place["inbox"], place["now_ms"], taken, outcome, -1)


def _json(seqs: Sequence[int]) -> str:
    return exact_json.dump(seqs).decode()


def _these(connection: apsw.Connection, seqs: Sequence[int]) -> list[Row]:
    rows: list[Row] = connection.execute(_THESE, (_json(seqs),)).fetchall()
    return rows
