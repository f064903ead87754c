"""Reads `status-index`: the events of an inbox by status, in order, across the tenant's shards.

The index lags behind the table. It may list an event that has another status by now, and may not list a new one yet. So
an entry is a hint, and callers check the item before they act on it.
"""

import heapq
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from cachetools import TLRUCache

from inbox.domain.events import Order, Status
from inbox.errors import StoreUnavailable
from inbox.store.dynamodb import layout
from inbox.store.dynamodb.connection import MAX_QUERIES, NEXT_PAGE_LIMIT, TOO_MANY_ITEMS, Connection, groups_of
from inbox.store.dynamodb.event_states import KnownEvent
from inbox.store.dynamodb.items import is_expired, to_known_event
from inbox.store.dynamodb.layout import EVENTS, STATUS_INDEX, Range, text

_EXPIRED_PREFIX_SECONDS = 60
_MAX_EXPIRED_PREFIXES = 10_000


@dataclass(frozen=True, slots=True)
class _ExpiredPrefix:
    """At `checked_at_ms` all entries from the beginning of a range up to the key `last` had expired.

    It is forgotten after a while, because a replay can put an event that has not expired back among them.
    """

    last: str
    checked_at_ms: int
    known_since: float


@dataclass(frozen=True, slots=True)
class _Scan:
    partition: str
    first: str
    prefix: _ExpiredPrefix
    query: dict[str, Any]


class StatusIndex:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # TTL may take days to delete expired items, and each poll would read them again.
        self._expired_prefixes: TLRUCache[tuple[str, str], _ExpiredPrefix] = TLRUCache(
            _MAX_EXPIRED_PREFIXES,
            lambda _key, prefix, _now: prefix.known_since + _EXPIRED_PREFIX_SECONDS,
            time.monotonic,
        )
        self._mutex = threading.Lock()

    def read(
        self,
        partitions: list[str],
        inbox: str,
        ranges: list[tuple[Range, int]],
        order: Order,
        now_ms: int,
        *,
        rescan: bool = False,
    ) -> list[list[Iterator[KnownEvent]]]:
        """Returns an iterator per range and partition. A range comes with the size of its first page.

        The first pages are read at once and in parallel, further pages as they are needed. With `rescan` each further
        page begins at the start of the range again and leaves out what was yielded before, so that an event that was
        indexed meanwhile, at an earlier position, comes before the events that were sent after it.
        """
        scans = [
            self._plan(partition, range_, limit, order, now_ms) for range_, limit in ranges for partition in partitions
        ]
        first_pages = self._connection.map_parallel(lambda scan: self._connection.query(**scan.query), scans)
        iterators = [
            self._scan(scan, inbox, page, now_ms, rescan=rescan) for scan, page in zip(scans, first_pages, strict=True)
        ]
        return list(groups_of(len(partitions), iterators))

    def _plan(self, partition: str, range_: Range, limit: int, order: Order, now_ms: int) -> _Scan:
        first, last = range_
        with self._mutex:
            prefix = self._expired_prefixes.get((partition, first))
        if prefix is None or prefix.checked_at_ms > now_ms:
            prefix = _ExpiredPrefix(first, now_ms, time.monotonic())
        query = {
            "TableName": self._connection.table(EVENTS),
            "IndexName": STATUS_INDEX,
            "KeyConditionExpression": "gsi1pk = :partition AND gsi1sk BETWEEN :first AND :last",
            "ExpressionAttributeValues": {
                ":partition": text(partition),
                ":first": text(min(last, prefix.last)),
                ":last": text(last),
            },
            "ScanIndexForward": order is Order.OLDEST,
            "Limit": limit,
        }
        return _Scan(partition, first, prefix, query)

    def _scan(
        self, scan: _Scan, inbox: str, page: dict[str, Any], now_ms: int, *, rescan: bool
    ) -> Iterator[KnownEvent]:
        # Leased events are sorted by the end of the lease, so a new entry may appear before expired ones.
        all_expired = scan.query["ScanIndexForward"] and scan.first != layout.status_range(Status.LEASED)[0]
        seen: set[str] = set()
        is_rescan, has_yielded, start = False, False, {}
        for _ in range(MAX_QUERIES):
            new = [item for item in page["Items"] if layout.inbox_of(item) == inbox and item["gsi1sk"]["S"] not in seen]
            seen.update(item["gsi1sk"]["S"] for item in new)
            for item in new:
                if not is_expired(item, now_ms):
                    all_expired, has_yielded = False, True
                    yield to_known_event(item)
                elif all_expired:
                    # If there are too many to read, the next poll continues here.
                    with self._mutex:
                        self._expired_prefixes[scan.partition, scan.first] = _ExpiredPrefix(
                            item["gsi1sk"]["S"], now_ms, scan.prefix.known_since
                        )
            if "LastEvaluatedKey" not in page:
                return
            # A rescan that found nothing new continues behind the last page.
            if new or not is_rescan:
                start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
            is_rescan = rescan and has_yielded and bool(new)
            next_query = scan.query | {"Limit": NEXT_PAGE_LIMIT} | ({} if is_rescan else start)
            page = self._connection.query(**next_query)
        raise StoreUnavailable(TOO_MANY_ITEMS)


def merge_in_order(
    order: Order, sorted_events: Iterable[Iterator[KnownEvent]], unsorted: Iterable[KnownEvent]
) -> Iterator[KnownEvent]:
    """Yields all events in order, each once: while the index lags, it may list an event in two states."""
    newest_first = order is Order.NEWEST
    by_order_key = attrgetter("order_key")
    newly_sorted = sorted(unsorted, key=by_order_key, reverse=newest_first)
    merged = heapq.merge(newly_sorted, *sorted_events, key=by_order_key, reverse=newest_first)
    for _, same_event in groupby(merged, by_order_key):
        yield next(same_event)
