"""Who gets which undelivered events."""

import uuid
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import apsw

from inbox.domain import exact_json, stats
from inbox.domain.events import Order, Page, PageSize, Status, attempt_digest
from inbox.store.sqlite import attempts
from inbox.store.sqlite.attempts import Attempt
from inbox.store.sqlite.counting import count_each
from inbox.store.sqlite.database import Database, Row
from inbox.store.sqlite.rows import COLUMNS, as_stored, fitting, seconds
from inbox.store.sqlite.settling import RUN_OUT, Settling

_ELIGIBLE = """
    FROM events INDEXED BY events_by_status
    WHERE tenant_id = :tenant_id AND inbox = :inbox AND status = 'undelivered' AND expires_at_s > :now_s"""

_ANY_ELIGIBLE = f"SELECT EXISTS (SELECT 1 {_ELIGIBLE})"

_ANYTHING_TO_DO = f"""
    SELECT EXISTS (SELECT 1 {_ELIGIBLE}) OR EXISTS ({RUN_OUT}) OR EXISTS ({attempts.KNOWN})"""

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
            first = attempts.find(connection, place) if attempt is not None else None
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
        attempts.remember(connection, place, Attempt([hands["claim_id"]], seqs))
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
        attempts.add_claim(connection, place, first, hands["claim_id"])
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
