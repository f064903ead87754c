"""Finds inboxes that have events to claim, for waiting polls.

While nothing is written, a check costs one pragma. After a write it reads only what was written: new events by seq,
releases and replays from `reopened_inboxes`. No row is written when a lease or a delay ends, so a watch remembers the
next end of each inbox, and examines all inboxes once a second for leases created since.
"""

import math
from collections.abc import Collection
from typing import NamedTuple

import apsw

from inbox.domain import exact_json
from inbox.domain.events import InboxKey
from inbox.store.sqlite.database import Database, Row
from inbox.store.sqlite.files import TEMPORARY, unavailable
from inbox.store.sqlite.rows import seconds

_EXAMINE_ALL_EVERY_MS = 1_000
# About 10 ms of reading. After a larger import, the next checks continue.
_MAX_NEW_EVENTS = 10_000

_DATA_VERSION = "PRAGMA data_version"

_NEWEST = """
    SELECT coalesce((SELECT max(seq) FROM events), 0), coalesce((SELECT max(number) FROM reopened_inboxes), 0)"""

_NEW_EVENTS = """
    SELECT DISTINCT tenant_id, inbox FROM events NOT INDEXED
    WHERE seq > :known AND seq <= :newest AND status = 'undelivered' AND expires_at_s > :now_s"""

_REOPENED = "SELECT DISTINCT tenant_id, inbox FROM reopened_inboxes WHERE number > :known AND number <= :newest"

_OF_WAITING_BY_END = """
    FROM events INDEXED BY events_by_end WHERE tenant_id = waiting.tenant_id AND inbox = waiting.inbox"""

# The backlog first: that table is small enough for the page cache, and in the index each inbox has its entries on
# another page. Without MATERIALIZED, SQLite would evaluate each subquery twice: for the result and for the last
# condition.
_EXAMINE = f"""
    WITH waiting AS MATERIALIZED (
        SELECT value ->> 0 AS tenant_id, value ->> 1 AS inbox FROM json_each(:inboxes)),
    examined AS MATERIALIZED (
        SELECT tenant_id, inbox,
            EXISTS (SELECT 1 FROM backlog
                    WHERE tenant_id = waiting.tenant_id AND inbox = waiting.inbox AND undelivered > 0)
            AND EXISTS (SELECT 1 FROM events INDEXED BY events_by_status
                        WHERE tenant_id = waiting.tenant_id AND inbox = waiting.inbox
                        AND status = 'undelivered' AND expires_at_s > :now_s)
            OR EXISTS (SELECT 1 {_OF_WAITING_BY_END} AND until_ms <= :now_ms AND expires_at_s > :now_s) AS has_event,
            (SELECT min(until_ms) {_OF_WAITING_BY_END} AND until_ms > :now_ms) AS next_end_ms
        FROM waiting)
    SELECT tenant_id, inbox, has_event, next_end_ms FROM examined WHERE has_event OR next_end_ms IS NOT NULL"""


class _Numbers(NamedTuple):
    """The newest event and the newest row of `reopened_inboxes` that a check has read."""

    seq: int
    reopened: int


class SQLiteArrivalWatch:
    interval_seconds = 0.025

    def __init__(self, database: Database) -> None:
        self._database = database
        # Not pooled: `data_version` tells what others have written since this connection last read it.
        self._connection: apsw.Connection | None = None
        self._reset()

    def check(self, waiting: frozenset[InboxKey], now_ms: int) -> set[InboxKey]:
        if not waiting:
            self._reset()
            return set()
        try:
            return self._check(self._connect(), waiting, now_ms)
        except Exception as error:
            self.close()
            if isinstance(error, TEMPORARY):
                raise unavailable(self._database.path, error) from error
            raise

    def check_soon(self, tenant_ids: Collection[str]) -> None:
        """Does nothing: the next check finds what any process has written."""

    def close(self) -> None:
        self._reset()
        if self._connection is not None:
            self._database.discard(self._connection)
            self._connection = None

    def _reset(self) -> None:
        """Makes the next check examine each inbox."""
        self._known: frozenset[InboxKey] = frozenset()
        self._version: int | None = None
        self._numbers: _Numbers | None = None
        self._ends_ms: dict[InboxKey, int] = {}
        self._next_end_ms: float = math.inf
        self._examined_all_at_ms = 0
        self._may_have_more = False

    def _connect(self) -> apsw.Connection:
        if self._connection is not None and not self._database.is_in_place(self._connection):
            self.close()
        self._connection = self._connection or self._database.connect()
        return self._connection

    def _check(self, connection: apsw.Connection, waiting: frozenset[InboxKey], now_ms: int) -> set[InboxKey]:
        # Read before everything else, so that the next check finds what is written meanwhile.
        version: int = connection.execute(_DATA_VERSION).get
        found: set[InboxKey] = set()
        if version != self._version:
            self._version, self._may_have_more = version, True
            found |= self._read_new(connection, now_ms) & waiting
        if not self._known:
            self._examined_all_at_ms = now_ms
        # Comparing sets of 5,000 takes 0.1 ms; an unchanged set is the same object.
        to_examine = frozenset() if waiting is self._known else waiting - self._known
        self._known = waiting
        if self._may_have_more and not 0 <= now_ms - self._examined_all_at_ms < _EXAMINE_ALL_EVERY_MS:
            self._examined_all_at_ms, self._may_have_more = now_ms, False
            self._ends_ms, self._next_end_ms = {}, math.inf
            to_examine = waiting
        if now_ms >= self._next_end_ms:
            to_examine |= self._pop_ended(now_ms) & waiting
        if to_examine:
            found |= self._examine(connection, to_examine, now_ms)
        # An event that no poll has claimed after a second is reported again.
        self._may_have_more = self._may_have_more or bool(found)
        return found

    def _read_new(self, connection: apsw.Connection, now_ms: int) -> set[InboxKey]:
        """Returns the inboxes with new or reopened events since the last check. The first check returns none."""
        newest = _Numbers(*connection.execute(_NEWEST).get)
        known = self._numbers or newest
        if newest.seq > known.seq + _MAX_NEW_EVENTS:
            newest = newest._replace(seq=known.seq + _MAX_NEW_EVENTS)
            # Makes the next check continue.
            self._version = None
        self._numbers = newest
        found: set[InboxKey] = set()
        if newest.seq > known.seq:
            parameters = {"known": known.seq, "newest": newest.seq, "now_s": seconds(now_ms)}
            found.update(connection.execute(_NEW_EVENTS, parameters))
        if newest.reopened > known.reopened:
            found.update(connection.execute(_REOPENED, {"known": known.reopened, "newest": newest.reopened}))
        return found

    def _pop_ended(self, now_ms: int) -> set[InboxKey]:
        """Removes the ends that have passed. Returns their inboxes, some of which may not wait any more."""
        ended = {key for key, end_ms in self._ends_ms.items() if end_ms <= now_ms}
        for key in ended:
            del self._ends_ms[key]
        self._next_end_ms = min(self._ends_ms.values(), default=math.inf)
        return ended

    def _examine(self, connection: apsw.Connection, inboxes: frozenset[InboxKey], now_ms: int) -> set[InboxKey]:
        """Returns the inboxes that have an event to claim. Records when the next lease or delay of each inbox ends."""
        parameters = {"inboxes": exact_json.dump(list(inboxes)).decode(), "now_ms": now_ms, "now_s": seconds(now_ms)}
        rows: list[Row] = connection.execute(_EXAMINE, parameters).fetchall()
        for tenant_id, inbox, _, end_ms in rows:
            if end_ms is not None:
                self._ends_ms[tenant_id, inbox] = end_ms
                self._next_end_ms = min(self._next_end_ms, end_ms)
        return {(tenant_id, inbox) for tenant_id, inbox, has_event, _ in rows if has_event}
