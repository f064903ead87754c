"""Reading `status-index`: a tenant's events of one status, in order, across its shards.

The index lags behind the table: it can show an event that has moved on, and not yet show one that is there. So an entry
is a hint, and whoever acts on one checks the item itself.
"""

import heapq
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import structlog
from cachetools import TTLCache

from inbox.errors import StoreUnavailable
from inbox.events import Event, Order, Page, PageSize, Status
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.items import is_expired
from inbox.store.dynamodb.layout import EVENTS, STATUS_INDEX, Item, event_key, place_of, status_range, text

# Beyond what is wanted: a few stale entries then cost no second query, and the last one says whether there is more.
_SPARE = 10
# Further queries are for an index with many entries that nobody can have any more.
_LATER_LIMIT = 1_000
_MOST_QUERIES = 50
_FORGET_SECONDS = 60
_MOST_REMEMBERED = 10_000

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Entry:
    """One state of one event: an event that was handed out and comes back has another number of deliveries."""

    partition: str
    event_id: str
    status_key: str
    place: str
    deliveries: int
    payload_bytes: int

    @property
    def key(self) -> dict[str, Any]:
        return event_key(self.partition, self.event_id)


Take = Callable[[list[Entry], list[Event]], None]


class StatusIndex:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Up to which key all entries of a partition and status have expired. TTL may take days to delete them, and
        # they would be read again at each poll.
        self._expired_until: TTLCache[tuple[str, Status], str] = TTLCache(_MOST_REMEMBERED, _FORGET_SECONDS)
        self._mutex = threading.Lock()

    def entries(self, partitions: list[str], status: Status, order: Order, wanted: int, now_ms: int) -> Iterator[Entry]:
        """All entries, fetched as they are asked for; `wanted` says how many that will probably be."""
        limit = wanted // len(partitions) + _SPARE
        queries = [self._query(partition, status, order, limit) for partition in partitions]
        first_pages = self._connection.at_once(lambda query: self._connection.call("query", **query), queries)
        walks = [
            self._walk(partition, status, query, page, now_ms)
            for partition, query, page in zip(partitions, queries, first_pages, strict=True)
        ]
        newest_first = order is Order.NEWEST
        yield from heapq.merge(*walks, key=lambda entry: entry.status_key, reverse=newest_first)

    def _query(self, partition: str, status: Status, order: Order, limit: int) -> dict[str, Any]:
        first, last = status_range(status)
        with self._mutex:
            first = self._expired_until.get((partition, status), first)
        return {
            "TableName": self._connection.table(EVENTS),
            "IndexName": STATUS_INDEX,
            "KeyConditionExpression": "gsi1pk = :partition AND gsi1sk BETWEEN :first AND :last",
            "ExpressionAttributeValues": {":partition": text(partition), ":first": text(first), ":last": text(last)},
            "ScanIndexForward": order is Order.OLDEST,
            "Limit": limit,
        }

    def _walk(
        self, partition: str, status: Status, query: dict[str, Any], page: dict[str, Any], now_ms: int
    ) -> Iterator[Entry]:
        all_expired = query["ScanIndexForward"]
        for _ in range(_MOST_QUERIES):
            for item in page["Items"]:
                if not is_expired(item, now_ms):
                    all_expired = False
                    yield _entry(item)
                elif all_expired:
                    with self._mutex:
                        self._expired_until[partition, status] = item["gsi1sk"]["S"]
            if "LastEvaluatedKey" not in page:
                return
            later = query | {"Limit": _LATER_LIMIT, "ExclusiveStartKey": page["LastEvaluatedKey"]}
            page = self._connection.call("query", **later)
        # The next poll begins where the expired ones end, as far as they were read.
        raise StoreUnavailable("DynamoDB still has too many expired events in the index.")


def fill(entries: Iterator[Entry], size: PageSize, at_a_time: int, take: Take, got: list[Event]) -> Page:
    """Goes on until the page is full or the entries end. `take` adds to `got` what it gets of those it is given.

    What was got is never given up for an error that comes later: it may be marked delivered already.
    """
    try:
        while group := list(islice(_fitting(entries, size, got), at_a_time)):
            take(group, got)
        return Page(got, more=next(entries, None) is not None)
    except Exception as error:
        if not got:
            raise
        _log.warning("page cut short", cause=str(error), error=type(error).__name__)
        return Page(got, more=True)


def _fitting(entries: Iterator[Entry], size: PageSize, got: list[Event]) -> Iterator[Entry]:
    """Always a first, and no further one once those before it are enough."""
    count, payload_bytes = len(got), sum(len(event.payload) for event in got)
    while count < size.events and payload_bytes < size.payload_bytes:
        entry = next(entries, None)
        if entry is None:
            return
        yield entry
        count += 1
        payload_bytes += entry.payload_bytes


def _entry(item: Item) -> Entry:
    return Entry(
        partition=item["pk"]["S"],
        event_id=item["sk"]["S"],
        status_key=item["gsi1sk"]["S"],
        place=place_of(item),
        deliveries=int(item["deliveries"]["N"]),
        payload_bytes=int(item["payload_bytes"]["N"]),
    )
