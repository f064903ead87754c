"""Reads `status-index`: the events of an inbox by status, in order, across the tenant's shards.

The index lags behind the table. It may list an event that has another status by now, and may not list a new one yet. So
an entry is a hint, and callers check the item before they act on it.
"""

import heapq
import threading
import time
from collections import deque
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
from inbox.store.dynamodb.layout import EVENTS, STATUS_INDEX, Item, Range, text

_EXPIRED_PREFIX_SECONDS = 60
_MAX_EXPIRED_PREFIXES = 10_000
# Leases and delays that have ended, in a partition. They are sorted by their end, so the oldest event is only known
# once all of them are read.
_MAX_EXPIRED_LEASES = 10_000

_LEASED, _ = layout.status_range(Status.LEASED)
_UNDELIVERED, _ = layout.status_range(Status.UNDELIVERED)


class _Scan:
    """Reads the entries of a range of an index partition, page by page."""

    def __init__(
        self, connection: Connection, partition: str, inbox: str, range_: Range, order: Order, limit: int
    ) -> None:
        self._connection = connection
        self._inbox = inbox
        self._limit = limit
        self._pages = 0
        self._entries: deque[Item] = deque()
        self.partition = partition
        self.first, self._last = range_
        self.is_ascending = order is Order.OLDEST
        self._query: dict[str, Any] | None = {
            "TableName": connection.table(EVENTS),
            "IndexName": STATUS_INDEX,
            "KeyConditionExpression": "gsi1pk = :partition AND gsi1sk BETWEEN :first AND :last",
            "ScanIndexForward": self.is_ascending,
            "Limit": limit,
            **self._values(self.first),
        }

    def peek(self) -> Item | None:
        """Returns the next entry and does not move on. None at the end."""
        while not self._entries and self._query is not None:
            self.read_page()
        return self._entries[0] if self._entries else None

    def __iter__(self) -> Iterator[Item]:
        while self.peek() is not None:
            yield self._entries.popleft()

    def drop(self) -> None:
        """Moves behind the entry that `peek` has returned."""
        self._entries.popleft()

    def skip_to(self, first: str) -> None:
        """Moves to the first entry from the key `first` on, in an ascending scan."""
        while self._entries and self._entries[0]["gsi1sk"]["S"] < first:
            self._entries.popleft()
        if not self._entries and self._query is not None:
            self._query.pop("ExclusiveStartKey", None)
            self._query |= {"Limit": self._limit, **self._values(min(first, self._last))}

    def read_page(self) -> None:
        if self._query is None:
            return
        if self._pages == MAX_QUERIES:
            raise StoreUnavailable(TOO_MANY_ITEMS)
        page = self._connection.query(**self._query)
        self._pages += 1
        self._entries.extend(entry for entry in page["Items"] if layout.inbox_of(entry) == self._inbox)
        if "LastEvaluatedKey" in page:
            self._query |= {"Limit": NEXT_PAGE_LIMIT, "ExclusiveStartKey": page["LastEvaluatedKey"]}
        else:
            self._query = None

    def _values(self, first: str) -> dict[str, Any]:
        values = {":partition": text(self.partition), ":first": text(first), ":last": text(self._last)}
        return {"ExpressionAttributeValues": values}


@dataclass(frozen=True, slots=True)
class _ExpiredPrefix:
    """At `checked_at_ms` all entries from the beginning of a range up to the key `last` had expired.

    It is forgotten after a while, because a replay can put an event that has not expired back among them.
    """

    last: str
    checked_at_ms: int
    known_since: float


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
        self, partitions: list[str], inbox: str, ranges: list[tuple[Range, int]], order: Order, now_ms: int
    ) -> list[list[Iterator[KnownEvent]]]:
        """Returns an iterator per range and partition. A range comes with the size of its first page.

        The first pages are read at once and in parallel, further pages as they are needed.
        """
        scans = [
            _Scan(self._connection, partition, inbox, range_, order, limit)
            for range_, limit in ranges
            for partition in partitions
        ]
        iterators = [self._unexpired(scan, scan.first, now_ms) for scan in scans]
        self._connection.map_parallel(_Scan.read_page, scans)
        return list(groups_of(len(partitions), iterators))

    def read_claimable(
        self, partitions: list[str], inbox: str, limit: int, last: str, now_ms: int
    ) -> tuple[list[KnownEvent], list[Iterator[KnownEvent]]]:
        """Returns events whose lease or delay has ended, in no order, and undelivered ones up to the key `last`.

        `leased` is the status before `undelivered` in the index, so one query finds both, unless it comes upon a lease
        that has not expired.
        """
        scans = [
            _Scan(self._connection, partition, inbox, (_LEASED, last), Order.OLDEST, limit) for partition in partitions
        ]
        self._connection.map_parallel(_Scan.read_page, scans)
        # An index that lags may list a lease and its extension. The latter is listed later.
        leases = {event.sort_key: event for scan in scans for event in _read_expired_leases(scan, now_ms)}
        return list(leases.values()), [self._unexpired(scan, _UNDELIVERED, now_ms) for scan in scans]

    def _unexpired(self, scan: _Scan, first: str, now_ms: int) -> Iterator[KnownEvent]:
        """Returns the events of the scan from the key `first` on that have not expired."""
        # Leased events are sorted by the end of the lease, so a new entry may appear before expired ones.
        if not scan.is_ascending or first == _LEASED:
            return (to_known_event(entry) for entry in scan if not is_expired(entry, now_ms))
        with self._mutex:
            prefix = self._expired_prefixes.get((scan.partition, first))
        if prefix is None or prefix.checked_at_ms > now_ms:
            prefix = _ExpiredPrefix(first, now_ms, time.monotonic())
        scan.skip_to(prefix.last)
        return self._behind(prefix, scan, first, now_ms)

    def _behind(self, prefix: _ExpiredPrefix, scan: _Scan, first: str, now_ms: int) -> Iterator[KnownEvent]:
        """Extends the prefix by the expired events at the beginning, and yields those that have not expired."""
        all_expired = True
        for entry in scan:
            if not is_expired(entry, now_ms):
                all_expired = False
                yield to_known_event(entry)
            elif all_expired:
                # If there are too many to read, the next poll continues here.
                with self._mutex:
                    self._expired_prefixes[scan.partition, first] = _ExpiredPrefix(
                        entry["gsi1sk"]["S"], now_ms, prefix.known_since
                    )


def _read_expired_leases(scan: _Scan, now_ms: int) -> Iterator[KnownEvent]:
    """Yields the events at the beginning of the scan whose lease or delay has ended, and skips the other leases."""
    for _ in range(_MAX_EXPIRED_LEASES):
        entry = scan.peek()
        until_ms = None if entry is None else layout.unavailable_until_ms(entry["gsi1sk"]["S"])
        if entry is None or until_ms is None:
            return
        if until_ms > now_ms:
            break
        scan.drop()
        if not is_expired(entry, now_ms):
            yield to_known_event(entry)
    scan.skip_to(_UNDELIVERED)


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
