"""Taking over events from another store."""

from collections.abc import Sequence
from functools import partial

from inbox.events import Adopted, Record, Status
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.items import is_too_large, to_item
from inbox.store.dynamodb.layout import EVENTS, Item, copied_place, event_key, text
from inbox.store.dynamodb.shards import Shards
from inbox.store.dynamodb.writing import Writing


class Adopting:
    def __init__(self, connection: Connection, shards: Shards) -> None:
        self._connection = connection
        self._shards = shards
        self._writing = Writing(connection)

    def adopt(self, tenant_id: str, records: Sequence[Record], now_ms: int) -> Adopted:
        spread = self._shards.of(tenant_id)
        there = self._there_already(tenant_id, records)
        writes: list[tuple[Item, Item | None]] = []
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
            else:
                writes.append((item, seen))
        self._connection.at_once(partial(self._write, now_ms), writes)
        return Adopted(len(writes), too_large)

    def _there_already(self, tenant_id: str, records: Sequence[Record]) -> dict[str, Item]:
        spread = self._shards.of(tenant_id)
        ids = [record.event.event_id for record in records]
        keys = [event_key(partition, event_id) for event_id in ids for partition in spread.may_hold(event_id)]
        found = self._connection.get_many(
            EVENTS,
            keys,
            ProjectionExpression="sk, #status, gsi1pk, gsi1sk, claim_id",
            ExpressionAttributeNames={"#status": "status"},
        )
        return {item["sk"]["S"]: item for item in found}

    def _write(self, now_ms: int, write: tuple[Item, Item | None]) -> None:
        item, seen = write
        if seen is None:
            self._writing.insert(item, now_ms)
        else:
            self._writing.replace(item, seen)


def _has_fallen_behind(seen: Item, record: Record) -> bool:
    """Copied before its delivery, and not yet handed out here."""
    untouched = seen["status"] == text(Status.UNDELIVERED) and "claim_id" not in seen
    return untouched and record.event.status is Status.DELIVERED
