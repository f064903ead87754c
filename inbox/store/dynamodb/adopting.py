"""Taking over events from another store."""

from collections.abc import Callable, Sequence
from functools import partial

from inbox.events import Adopted, Record, Status
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.items import is_too_large, to_item
from inbox.store.dynamodb.layout import EVENTS, Item, by_id, copied_place, event_key, text
from inbox.store.dynamodb.shards import Shards, Spread
from inbox.store.dynamodb.writing import Writing


class Adopting:
    def __init__(self, connection: Connection, shards: Shards) -> None:
        self._connection = connection
        self._shards = shards
        self._writing = Writing(connection)

    def adopt(self, tenant_id: str, records: Sequence[Record], now_ms: int) -> Adopted:
        spread = self._shards.of(tenant_id)
        there = self._there_already(spread, records)
        fresh: list[Item] = []
        conditional: list[Callable[[], object]] = []
        too_large = []
        for record in records:
            event_id = record.event.event_id
            seen = there.get(event_id)
            if seen is not None and not _has_fallen_behind(seen, record):
                continue
            partition = spread.for_new(event_id, now_ms) if seen is None else seen["gsi1pk"]["S"]
            place = copied_place(record.event.timestamp_ms, record.number)
            item = to_item(tenant_id, partition, record.event, place, record.expires_at_s, record.fingerprint)
            if is_too_large(item):
                too_large.append(event_id)
            elif seen is not None:
                conditional.append(partial(self._writing.replace, item, seen))
            elif record.fingerprint is not None:
                # Somebody may send an event under the same key meanwhile.
                conditional.append(partial(self._writing.insert, item, now_ms))
            else:
                fresh.append(item)
        self._connection.at_once(lambda write: write(), conditional)
        self._writing.write_all_fresh(fresh)
        return Adopted(len(fresh) + len(conditional), too_large)

    def _there_already(self, spread: Spread, records: Sequence[Record]) -> dict[str, Item]:
        ids = [record.event.event_id for record in records]
        keys = [event_key(partition, event_id) for event_id in ids for partition in spread.may_hold(event_id)]
        found = self._connection.get_many(
            EVENTS,
            keys,
            ProjectionExpression="sk, #status, gsi1pk, gsi1sk, claim_id",
            ExpressionAttributeNames={"#status": "status"},
        )
        return by_id(found)


def _has_fallen_behind(seen: Item, record: Record) -> bool:
    """Copied before its delivery, and not yet handed out here."""
    untouched = seen["status"] == text(Status.UNDELIVERED) and "claim_id" not in seen
    return untouched and record.event.status is Status.DELIVERED
