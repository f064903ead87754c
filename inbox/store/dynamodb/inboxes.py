"""Named inboxes in DynamoDB."""

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from cachetools import TLRUCache

from inbox.domain.inboxes import MAX_INBOXES, Inbox
from inbox.errors import InboxClosing, InboxExists, TooManyInboxes
from inbox.store.dynamodb.connection import READ_AT_ONCE, ConditionFailed, Connection, groups_of
from inbox.store.dynamodb.counters import CounterItems
from inbox.store.dynamodb.event_writer import Writing
from inbox.store.dynamodb.layout import (
    DEFAULT_ENABLED,
    EVENTS,
    INBOX_ITEMS_PREFIX,
    STATUS_INDEX,
    TENANTS,
    Item,
    inbox_key,
    inbox_names_key,
    inbox_of,
    is_inbox,
    key_of,
    number,
    tenant_key,
    text,
)
from inbox.store.dynamodb.pending_counts import Counting
from inbox.store.dynamodb.shards import Shards

_CACHED_TENANTS = 10_000
_RENEWED_AFTER = 0.8
"""Of the time that they may be remembered."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Whether `default` is on, and the open named inboxes in the order of their names."""

    default_enabled: bool
    named: list[Inbox]


@dataclass(slots=True)
class _Known:
    since: float
    definition: Definition
    is_being_renewed: bool = False


class Definitions:
    def __init__(self, connection: Connection, remember_seconds: float) -> None:
        self._connection = connection
        self._mutex = threading.Lock()
        self.remember_seconds = remember_seconds
        # Counted from before they were read: a slow answer is an old one.
        self._known: TLRUCache[str, _Known] = TLRUCache(
            _CACHED_TENANTS, lambda _key, known, _now: known.since + remember_seconds, time.monotonic
        )

    def of(self, tenant_id: str) -> Definition:
        now = time.monotonic()
        with self._mutex:
            known = self._known.get(tenant_id)
            if known is not None:
                # One reads them anew, while the others may still go by these: otherwise all would, at the same moment.
                if known.is_being_renewed or now < known.since + _RENEWED_AFTER * self.remember_seconds:
                    return known.definition
                known.is_being_renewed = True
        fresh = _Known(now, self.read(tenant_id))
        with self._mutex:
            self._known[tenant_id] = fresh
        return fresh.definition

    def read(self, tenant_id: str) -> Definition:
        """As it is now."""
        found = self._connection.walk(
            TableName=self._connection.table(TENANTS),
            KeyConditionExpression="PK = :tenant AND begins_with(SK, :inboxes)",
            ExpressionAttributeValues={":tenant": tenant_key(tenant_id)["PK"], ":inboxes": text(INBOX_ITEMS_PREFIX)},
            ConsistentRead=True,
        )
        items = list(found)
        named = [_inbox(item) for item in items if is_inbox(item) and "closing" not in item]
        return Definition(all(item.get(DEFAULT_ENABLED) != {"BOOL": False} for item in items), named)

    def wait_until_known(self) -> None:
        time.sleep(self.remember_seconds)


def _inbox(item: Item) -> Inbox:
    types = item["event_types"]
    return Inbox(
        name=item["name"]["S"],
        event_types=tuple(each["S"] for each in types["L"]) if "L" in types else None,
        created_at_ms=int(item["created_at"]["N"]),
    )


# The conditions, and why.
_NEW = "attribute_not_exists(PK)"
_THERE = "attribute_exists(PK)"
# What is being removed must not come back to life with its old copies.
_OPEN = f"{_THERE} AND attribute_not_exists(closing)"
# The names stand in one item, so that those who come at the same moment are counted one after the other.
_ROOM_FOR_IT = "attribute_not_exists(inbox_names) OR size(inbox_names) < :limit"
# Not another one that was made under its name meanwhile.
_THE_SAME_AND_CLOSING = "attribute_exists(closing) AND made_by = :made_by"


class DynamoDBInboxes:
    def __init__(self, connection: Connection, shards: Shards, definitions: Definitions, counting: Counting) -> None:
        self._connection = connection
        self._definitions = definitions
        self._shards = shards
        self._writing = Writing(connection)
        self._counters = CounterItems(connection)
        self._counting = counting

    def save(self, tenant_id: str, inbox: Inbox, *, replace: bool = True) -> bool:
        is_new = self._create(tenant_id, inbox)
        if not is_new and not (replace and self._change(tenant_id, inbox)):
            there = self._connection.get(TENANTS, inbox_key(tenant_id, inbox.name))
            if there is None:
                raise TooManyInboxes(f"A tenant can have up to {MAX_INBOXES} inboxes.")
            if not replace and "closing" not in there:
                raise InboxExists(inbox.name)
            raise InboxClosing(f"The inbox {inbox.name} is still being deleted.")
        self._definitions.wait_until_known()
        return is_new

    def get(self, tenant_id: str, name: str) -> Inbox | None:
        return next((inbox for inbox in self._definitions.of(tenant_id).named if inbox.name == name), None)

    def all(self, tenant_id: str) -> list[Inbox]:
        return self._definitions.read(tenant_id).named

    def close(self, tenant_id: str, name: str) -> bool:
        key, closing = inbox_key(tenant_id, name), {":closing": {"BOOL": True}}
        # Its name is free for another one in the count as soon as it is closed.
        with suppress(ConditionFailed):
            self._connection.transact(
                {"Update": self._update(key, "SET closing = :closing", _OPEN, closing)},
                {"Update": self._update(inbox_names_key(tenant_id), "DELETE inbox_names :name", _THERE, _set(name))},
            )
        is_there = self._connection.get(TENANTS, key) is not None
        if is_there:
            self._definitions.wait_until_known()
        return is_there

    def delete_copies(self, tenant_id: str, name: str, limit: int) -> int:
        there = self._connection.get(TENANTS, inbox_key(tenant_id, name))
        if there is None or "closing" not in there:
            return 0
        cleared = self._delete_copies(tenant_id, name, limit)
        if cleared < limit:
            # The index lags, and the last events before the inbox was closed may only now be in it.
            self._definitions.wait_until_known()
            cleared += self._delete_copies(tenant_id, name, limit - cleared)
        if cleared < limit:
            self._counting.forget(tenant_id, name)
            self._counters.forget(tenant_id, name)
            # Where somebody else was as far before, there may be a new inbox of that name by now.
            with suppress(ConditionFailed):
                self._connection.call(
                    "delete_item",
                    TableName=self._connection.table(TENANTS),
                    Key=inbox_key(tenant_id, name),
                    ConditionExpression=_THE_SAME_AND_CLOSING,
                    ExpressionAttributeValues={":made_by": there["made_by"]},
                )
        return cleared

    def set_default_enabled(self, tenant_id: str, enabled: bool) -> None:
        self._connection.call(
            "update_item",
            TableName=self._connection.table(TENANTS),
            Key=inbox_names_key(tenant_id),
            UpdateExpression=f"SET {DEFAULT_ENABLED} = :enabled",
            ExpressionAttributeValues={":enabled": {"BOOL": enabled}},
        )
        self._definitions.wait_until_known()

    def is_default_enabled(self, tenant_id: str) -> bool:
        return self._definitions.of(tenant_id).default_enabled

    def _delete_copies(self, tenant_id: str, name: str, limit: int) -> int:
        keys = list(islice(self._copies(tenant_id, name), limit))
        self._writing.delete(keys)
        return len(keys)

    def _copies(self, tenant_id: str, name: str) -> Iterator[Item]:
        walks = [
            self._connection.walk(
                TableName=self._connection.table(EVENTS),
                IndexName=STATUS_INDEX,
                KeyConditionExpression="gsi1pk = :partition",
                ExpressionAttributeValues={":partition": text(partition)},
                Limit=READ_AT_ONCE,
            )
            for partition in self._shards.of(tenant_id).all(name)
        ]
        # Shard 3 of `default` shares a partition with an inbox named `3` if an earlier release made the shard.
        keys = (key_of(item) for item in chain(*walks) if inbox_of(item) == name)
        # The index shows for a while what was deleted, and that is not to be counted again.
        for group in groups_of(READ_AT_ONCE, keys):
            yield from self._connection.get_many(EVENTS, group, ProjectionExpression="pk, sk")

    def _change(self, tenant_id: str, inbox: Inbox) -> bool:
        """Whether there is such an inbox, and it is open."""
        key, types = inbox_key(tenant_id, inbox.name), {":types": _types(inbox)}
        try:
            self._connection.call("update_item", **self._update(key, "SET event_types = :types", _OPEN, types))
        except ConditionFailed:
            return False
        return True

    def _create(self, tenant_id: str, inbox: Inbox) -> bool:
        """Whether it was made: there was none of that name, and room for one more."""
        item = {
            **inbox_key(tenant_id, inbox.name),
            "name": text(inbox.name),
            "event_types": _types(inbox),
            "created_at": number(inbox.created_at_ms),
            "made_by": text(uuid.uuid4().hex),
        }
        names = inbox_names_key(tenant_id), "ADD inbox_names :name", _ROOM_FOR_IT
        put = {"TableName": self._connection.table(TENANTS), "Item": item, "ConditionExpression": _NEW}
        try:
            self._connection.transact(
                {"Put": put}, {"Update": self._update(*names, _set(inbox.name) | {":limit": number(MAX_INBOXES)})}
            )
        except ConditionFailed:
            return False
        return True

    def _update(self, key: dict[str, Any], expression: str, condition: str, values: dict[str, Any]) -> dict[str, Any]:
        return {
            "TableName": self._connection.table(TENANTS),
            "Key": key,
            "UpdateExpression": expression,
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
        }


def _set(name: str) -> dict[str, Any]:
    return {":name": {"SS": [name]}}


def _types(inbox: Inbox) -> dict[str, Any]:
    return {"NULL": True} if inbox.event_types is None else {"L": [text(pattern) for pattern in inbox.event_types]}
