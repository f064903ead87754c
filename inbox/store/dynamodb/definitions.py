"""A tenant's inboxes, as every event that is put asks for them.

Every process remembers them for a moment. Whoever changes them waits that moment before it answers: then nobody goes by
what was before.
"""

import threading
import time
from dataclasses import dataclass

from cachetools import TLRUCache

from inbox.domain.inboxes import Inbox
from inbox.store.dynamodb.connection import Connection
from inbox.store.dynamodb.layout import (
    DEFAULT_ENABLED,
    INBOX_ITEMS_PREFIX,
    TENANTS,
    Item,
    is_inbox,
    tenant_key,
    text,
)

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
