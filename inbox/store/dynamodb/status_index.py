"""Reading `status-index`: an inbox's events of one status, in order, across the tenant's shards.

The index lags behind the table: it can show an event that has moved on, and not yet show one that is there. So an entry
is a hint, and whoever acts on one checks the item itself.
"""

import heapq
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from cachetools import TLRUCache

from inbox.domain.events import Order, Status
from inbox.store.dynamodb.connection import LATER_LIMIT, MAX_QUERIES, Connection, groups_of, too_much
from inbox.store.dynamodb.event_states import Entry
from inbox.store.dynamodb.items import is_expired, to_entry
from inbox.store.dynamodb.layout import EVENTS, STATUS_INDEX, inbox_of, status_range, text

_FORGET_SECONDS = 60
_MAX_REMEMBERED = 10_000

Range = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Expired:
    """Up to which key all entries from the beginning of a range have expired, by when, and how long that is known.

    After a while all are read again: an event that lives longer may have come back between them.
    """

    until: str
    by_ms: int
    since: float


class StatusIndex:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # TTL may take days to delete them, and they would be read again at each poll.
        self._expired: TLRUCache[tuple[str, str], _Expired] = TLRUCache(
            _MAX_REMEMBERED, lambda _where, expired, _now: expired.since + _FORGET_SECONDS, time.monotonic
        )
        self._mutex = threading.Lock()

    def walks(
        self,
        partitions: list[str],
        inbox: str,
        ranges: list[tuple[Range, int]],
        order: Order,
        now_ms: int,
        anew: bool = False,
    ) -> list[list[Iterator[Entry]]]:
        """For each range, given with how many entries will probably be asked for, a walk in each partition.

        All first pages are fetched at once, the further ones as they are asked for: from where the last one ended, or
        `anew` from the beginning, without what was found before. An event that came meanwhile, at a place that was
        passed already, is found then before those that were sent after it.
        """
        parts = [(partition, range_, limit) for range_, limit in ranges for partition in partitions]
        marks = [self._mark(partition, first, now_ms) for partition, (first, _), _ in parts]
        queries = [self._query(*part, mark, order) for part, mark in zip(parts, marks, strict=True)]
        first_pages = self._connection.at_once(lambda query: self._connection.query(**query), queries)
        walks = [
            self._walk((partition, first), mark, inbox, query, page, now_ms, anew)
            for (partition, (first, _), _), mark, query, page in zip(parts, marks, queries, first_pages, strict=True)
        ]
        return list(groups_of(len(partitions), walks))

    def _mark(self, partition: str, first: str, now_ms: int) -> _Expired:
        with self._mutex:
            mark = self._expired.get((partition, first))
        return mark if mark is not None and mark.by_ms <= now_ms else _Expired(first, now_ms, time.monotonic())

    def _query(self, partition: str, range_: Range, limit: int, mark: _Expired, order: Order) -> dict[str, Any]:
        last = range_[1]
        first = min(last, mark.until)
        return {
            "TableName": self._connection.table(EVENTS),
            "IndexName": STATUS_INDEX,
            "KeyConditionExpression": "gsi1pk = :partition AND gsi1sk BETWEEN :first AND :last",
            "ExpressionAttributeValues": {":partition": text(partition), ":first": text(first), ":last": text(last)},
            "ScanIndexForward": order is Order.OLDEST,
            "Limit": limit,
        }

    def _walk(
        self,
        where: tuple[str, str],
        mark: _Expired,
        inbox: str,
        query: dict[str, Any],
        page: dict[str, Any],
        now_ms: int,
        anew: bool,
    ) -> Iterator[Entry]:
        # What is sorted by the end of a lease can get new entries anywhere.
        all_expired = query["ScanIndexForward"] and where[1] != status_range(Status.LEASED)[0]
        seen: set[str] = set()
        is_beginning, has_shown, end = False, False, {}
        for _ in range(MAX_QUERIES):
            found = [item for item in page["Items"] if inbox_of(item) == inbox and item["gsi1sk"]["S"] not in seen]
            seen.update(item["gsi1sk"]["S"] for item in found)
            for item in found:
                if not is_expired(item, now_ms):
                    all_expired, has_shown = False, True
                    yield to_entry(item)
                elif all_expired:
                    # Where there are too many of them, the next poll begins here.
                    with self._mutex:
                        self._expired[where] = _Expired(item["gsi1sk"]["S"], now_ms, mark.since)
            if "LastEvaluatedKey" not in page:
                return
            # Where there was nothing new at the beginning, it goes on after all that is known.
            if found or not is_beginning:
                end = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
            is_beginning = anew and has_shown and bool(found)
            page = self._connection.query(**query | {"Limit": LATER_LIMIT} | ({} if is_beginning else end))
        raise too_much()


def in_order(order: Order, walks: Iterable[Iterator[Entry]], unsorted: Iterable[Entry]) -> Iterator[Entry]:
    """By place, and each place once: while an index lags, it can show an event in two states."""
    newest_first = order is Order.NEWEST
    by_place = attrgetter("place")
    last = None
    for entry in heapq.merge(
        sorted(unsorted, key=by_place, reverse=newest_first), *walks, key=by_place, reverse=newest_first
    ):
        if entry.place != last:
            last = entry.place
            yield entry
