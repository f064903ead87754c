"""Reading `status-index`: a tenant's events of one status, in order, across its shards.

The index lags behind the table: it can show an event that has moved on, and not yet show one that is there. So an entry
is a hint, and whoever acts on one checks the item itself.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from inbox.errors import StoreUnavailable
from inbox.events import Event, Order, Page, PageSize, Status
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.items import is_expired
from inbox.store.dynamodb.layout import EVENTS, STATUS_INDEX, Item, event_key, place_of, status_prefix, text

# Beyond what is wanted: a few stale entries then cost no second query, and the last one says whether there is more.
_SPARE = 10
# A bound for an index full of entries that nobody can have any more; far beyond what a lag leaves behind.
_MOST_PAGES = 100


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

    def entries(self, partitions: list[str], status: Status, order: Order, wanted: int, now_ms: int) -> Iterator[Entry]:
        """All entries, fetched as they are asked for; `wanted` says how many that will probably be."""
        limit = wanted // len(partitions) + _SPARE
        queries = [self._query(partition, status, order, limit) for partition in partitions]
        first_pages = self._connection.at_once(lambda query: self._connection.call("query", **query), queries)
        walks = [self._walk(query, page, now_ms) for query, page in zip(queries, first_pages, strict=True)]
        newest_first = order is Order.NEWEST
        yield from heapq.merge(*walks, key=lambda entry: entry.status_key, reverse=newest_first)

    def _query(self, partition: str, status: Status, order: Order, limit: int) -> dict[str, Any]:
        return {
            "TableName": self._connection.table(EVENTS),
            "IndexName": STATUS_INDEX,
            "KeyConditionExpression": "gsi1pk = :partition AND begins_with(gsi1sk, :status)",
            "ExpressionAttributeValues": {":partition": text(partition), ":status": text(status_prefix(status))},
            "ScanIndexForward": order is Order.OLDEST,
            "Limit": limit,
        }

    def _walk(self, query: dict[str, Any], page: dict[str, Any], now_ms: int) -> Iterator[Entry]:
        for _ in range(_MOST_PAGES):
            for item in page["Items"]:
                if not is_expired(item, now_ms):
                    yield _entry(item)
            if "LastEvaluatedKey" not in page:
                return
            page = self._connection.call("query", **query, ExclusiveStartKey=page["LastEvaluatedKey"])


def fill(entries: Iterator[Entry], size: PageSize, at_a_time: int, take: Take, got: list[Event]) -> Page:
    """Goes on until the page is full or the entries end. `take` adds to `got` what it gets of those it is given.

    What was got is never given up for an error that comes later: it may be marked delivered already.
    """
    try:
        while group := list(islice(_fitting(entries, size, got), at_a_time)):
            take(group, got)
        return Page(got, more=next(entries, None) is not None)
    except StoreUnavailable:
        if not got:
            raise
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
