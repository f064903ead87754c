"""SQLite without HTTP: one connection in a loop, with the schema and durability of the embedded store."""

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from bench.sample_data import PAYLOAD, RETENTION_SECONDS, TENANT

_INSERT = """
    INSERT INTO events (tenant_id, inbox, event_id, event_type, timestamp_ms, status, payload, expires_at_s)
    VALUES (?, 'default', ?, 'order.created', ?, 'undelivered', ?, ?)"""

_OLDEST = """
    SELECT seq FROM events
    WHERE tenant_id = ? AND inbox = 'default' AND status = 'undelivered' AND expires_at_s > ?
    ORDER BY timestamp_ms, seq LIMIT ?"""

_CLAIM = """
    UPDATE events SET status = 'delivered', deliveries = deliveries + 1, delivered_at_ms = ?, claim_id = ?
    WHERE seq IN (SELECT value FROM json_each(?))"""

_READ = """
    SELECT event_id, event_type, timestamp_ms, deliveries, payload FROM events
    WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY timestamp_ms, seq"""


def insert(database: Path, batch_size: int, seconds: float) -> float:
    """Returns events per second, in transactions of `batch_size` events."""
    inserted = 0
    with closing(_open_connection(database)) as connection:
        started = time.perf_counter()
        while time.perf_counter() < started + seconds:
            now_ms = time.time_ns() // 1_000_000
            expires_at_s = now_ms // 1000 + RETENTION_SECONDS
            with _transaction(connection):
                connection.executemany(
                    _INSERT, [(TENANT, str(uuid.uuid4()), now_ms, PAYLOAD, expires_at_s) for _ in range(batch_size)]
                )
            inserted += batch_size
        return inserted / (time.perf_counter() - started)


def claim(database: Path, batch_size: int, expected: int) -> float:
    """Claims all events, in transactions of `batch_size`, and returns events per second."""
    claimed = 0
    with closing(_open_connection(database)) as connection:
        started = time.perf_counter()
        while True:
            now_ms = time.time_ns() // 1_000_000
            with _transaction(connection):
                oldest = connection.execute(_OLDEST, (TENANT, now_ms // 1000, batch_size)).fetchall()
                seqs = json.dumps([seq for (seq,) in oldest])
                connection.execute(_CLAIM, (now_ms, uuid.uuid4().hex, seqs))
                events = connection.execute(_READ, (seqs,)).fetchall()
            claimed += len(events)
            if not events:
                break
        seconds = time.perf_counter() - started
    if claimed != expected:
        raise RuntimeError(f"{claimed} events were claimed instead of {expected}")
    return claimed / seconds


def _open_connection(database: Path) -> apsw.Connection:
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
    for name, value in (("synchronous", "full"), ("fullfsync", 1), ("checkpoint_fullfsync", 1)):
        connection.pragma(name, value)
    # A server on the same file also writes, for example to purge expired events.
    connection.set_busy_timeout(5000)
    return connection


@contextmanager
def _transaction(connection: apsw.Connection) -> Iterator[None]:
    # Not `with connection`, which creates a savepoint without taking the write lock.
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.execute("COMMIT")
