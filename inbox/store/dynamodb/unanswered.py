"""Claims whose answer never came.

Such a write may have happened. Then its event is marked delivered and no index shows it any more: only who remembers
the claim can still hand it out.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from inbox.store.dynamodb.layout import Item, text
from inbox.store.dynamodb.status_index import Entry

_MOST_REMEMBERED = 10_000
_WORTH_WAITING_MS = 60_000


@dataclass(frozen=True, slots=True)
class Doubt:
    entry: Entry
    claim_id: str
    since_ms: int

    def is_open(self, item: Item | None) -> bool:
        """The event is as it was before the claim."""
        return item is not None and item["gsi1sk"] == text(self.entry.status_key)

    def is_recent(self, now_ms: int) -> bool:
        return now_ms - self.since_ms < _WORTH_WAITING_MS


class Unanswered:
    """Each doubt is in one pair of hands: taking it takes it out."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._doubts: OrderedDict[tuple[str, str, str], Doubt] = OrderedDict()

    def remember(self, tenant_id: str, doubts: Iterable[Doubt]) -> None:
        with self._mutex:
            for doubt in doubts:
                self._doubts[tenant_id, doubt.entry.event_id, doubt.claim_id] = doubt
            while len(self._doubts) > _MOST_REMEMBERED:
                self._doubts.popitem(last=False)

    def take(self, tenant_id: str, most: int) -> list[Doubt]:
        if not self._doubts:
            return []
        with self._mutex:
            keys = [key for key in self._doubts if key[0] == tenant_id][:most]
            return [self._doubts.pop(key) for key in keys]
