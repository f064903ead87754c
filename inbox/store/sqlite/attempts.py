"""Polls that can be repeated: what each of them took."""

import json
from dataclasses import dataclass
from typing import Any

import apsw

from inbox.domain.events import ATTEMPT_MS

KNOWN = f"""
    SELECT claim_ids, seqs FROM attempts
    WHERE tenant_id = :tenant_id AND inbox = :inbox AND attempt = :attempt AND at_ms > :now_ms - {ATTEMPT_MS}"""

_REMEMBER = """
    INSERT OR REPLACE INTO attempts (tenant_id, inbox, attempt, at_ms, claim_ids, seqs)
    VALUES (:tenant_id, :inbox, :attempt, :now_ms, :claim_ids, :seqs)"""

_ADD_CLAIM = """
    UPDATE attempts SET claim_ids = :claim_ids
    WHERE tenant_id = :tenant_id AND inbox = :inbox AND attempt = :attempt"""

_PURGE = f"""
    DELETE FROM attempts WHERE (tenant_id, inbox, attempt) IN (
        SELECT tenant_id, inbox, attempt FROM attempts WHERE at_ms <= ? - {ATTEMPT_MS} LIMIT ?)"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The rows that the first claim took, and the ids of that claim and of those that took some of them anew."""

    claim_ids: list[str]
    seqs: list[int]


def find(connection: apsw.Connection, place: dict[str, Any]) -> Attempt | None:
    found = connection.execute(KNOWN, place).fetchone()
    return Attempt(*map(json.loads, found)) if found else None


def remember(connection: apsw.Connection, place: dict[str, Any], attempt: Attempt) -> None:
    connection.execute(
        _REMEMBER, {**place, "claim_ids": json.dumps(attempt.claim_ids), "seqs": json.dumps(attempt.seqs)}
    )


def add_claim(connection: apsw.Connection, place: dict[str, Any], attempt: Attempt, claim_id: str) -> None:
    connection.execute(_ADD_CLAIM, {**place, "claim_ids": json.dumps([*attempt.claim_ids, claim_id])})


def purge(connection: apsw.Connection, now_ms: int, limit: int) -> int:
    connection.execute(_PURGE, (now_ms, limit))
    return connection.changes()
