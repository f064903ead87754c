"""Taking over events from another store."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from inbox.domain.events import DEFAULT_INBOX, ExportedEvent, ImportResult, NewEvent
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.event_states import state_of
from inbox.store.dynamodb.event_writer import Writing
from inbox.store.dynamodb.items import copy_for, is_too_large, to_item
from inbox.store.dynamodb.layout import EVENTS, Item, by_sort_key, copied_place, key_of, text
from inbox.store.dynamodb.shards import Shards, Spread

_ADOPTED = "adopted"
"""The state in which an event was copied. While it is still in that state, nobody has touched it here."""


class Adopting:
    def __init__(self, connection: Connection, shards: Shards) -> None:
        self._connection = connection
        self._shards = shards
        self._writing = Writing(connection)

    def import_events(self, tenant_id: str, records: Sequence[ExportedEvent], now_ms: int) -> ImportResult:
        spread = self._shards.of(tenant_id)
        there = self._there_already(spread, records)
        fresh: list[Item] = []
        conditional: list[Callable[[], object]] = []
        too_large = []
        for record in records:
            item = _item(tenant_id, spread.for_new(record.event.event_id, now_ms), record)
            seen = there.get(item["sk"]["S"])
            if seen is not None and not _has_fallen_behind(seen, item):
                continue
            if is_too_large(item):
                too_large.append(record.event.event_id)
            elif seen is not None:
                conditional.append(partial(self._writing.replace, item | _where(seen, item), seen))
            elif record.fingerprint is not None:
                # Somebody may send an event under the same key meanwhile.
                conditional.append(partial(self._writing.insert, item, now_ms))
            else:
                fresh.append(item)
        self._connection.at_once(lambda write: write(), conditional)
        self._writing.write_all_fresh(fresh)
        return ImportResult(len(fresh) + len(conditional), too_large)

    def _there_already(self, spread: Spread, records: Sequence[ExportedEvent]) -> dict[str, Item]:
        keys = [key for record in records for key in spread.keys(record.event.event_id, record.event.inbox)]
        only = f"pk, sk, gsi1pk, gsi1sk, deliveries, {_ADOPTED}"
        return by_sort_key(self._connection.get_many(EVENTS, keys, ProjectionExpression=only))


def _item(tenant_id: str, shard: str, record: ExportedEvent) -> dict[str, Any]:
    event = record.event
    place = copied_place(event.timestamp_ms, record.number)
    state = state_of(event, place, record.lost_leases)
    new = NewEvent(event.event_id, event.event_type, event.payload, record.fingerprint)
    item = to_item(tenant_id, shard, new, event.timestamp_ms, place, state, record.expires_at_s)
    if event.inbox != DEFAULT_INBOX:
        item = copy_for(event.inbox, item, state)
    return item | {_ADOPTED: _version(item)}


def _version(item: Item) -> dict[str, str]:
    return text(f"{item['gsi1sk']['S']} {item['deliveries']['N']}")


def _has_fallen_behind(seen: Item, item: Item) -> bool:
    """Copied before the source changed it, and not touched here since."""
    return seen.get(_ADOPTED) == _version(seen) != _version(item)


def _where(seen: Item, item: Item) -> dict[str, Any]:
    """It stays where it is, whatever has become of the tenant's shards."""
    indexes = {name: seen["gsi1pk"] for name in ("gsi1pk", "gsi2pk") if name in item}
    return {**key_of(seen), **indexes}
