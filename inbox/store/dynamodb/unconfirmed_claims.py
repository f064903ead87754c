"""Claims whose answer never came.

Such a write may have happened. Then its event is marked delivered and no index shows it any more: only who remembers
the claim can still hand it out.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from inbox.domain.events import PageSize
from inbox.store.dynamodb.event_states import Entry
from inbox.store.dynamodb.layout import Item, text

_MAX_REMEMBERED = 10_000
_WORTH_WAITING_MS = 60_000


@dataclass(frozen=True, slots=True)
class Doubt:
    """Which claims of an event have had no answer."""

    entry: Entry
    claim_ids: frozenset[str]
    since_ms: int

    def is_ours(self, item: Item) -> bool:
        """It was one of them that took the event."""
        return item.get("claim_id", {}).get("S") in self.claim_ids

    def is_open(self, item: Item | None) -> bool:
        """The event is as it was before the claim."""
        return item is not None and item["gsi1sk"] == text(self.entry.status_key)

    def is_recent(self, now_ms: int) -> bool:
        return now_ms - self.since_ms < _WORTH_WAITING_MS


Whose = tuple[str, str]
"""A tenant and one of its inboxes."""


class Unanswered:
    """Each doubt is in one pair of hands: taking it takes it out."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._doubts: OrderedDict[tuple[Whose, str], Doubt] = OrderedDict()

    def remember(self, whose: Whose, doubts: Iterable[Doubt]) -> None:
        with self._mutex:
            for doubt in doubts:
                key = whose, doubt.entry.sort_key
                earlier = self._doubts[key].claim_ids if key in self._doubts else frozenset()
                self._doubts[key] = replace(doubt, claim_ids=doubt.claim_ids | earlier)
            while len(self._doubts) > _MAX_REMEMBERED:
                self._doubts.popitem(last=False)

    def take(self, whose: Whose, size: PageSize) -> list[Doubt]:
        """As many as fit on a page, and at least one where there is any."""
        taken: list[Doubt] = []
        with self._mutex:
            for key in [key for key in self._doubts if key[0] == whose][: size.events]:
                if sum(doubt.entry.payload_bytes for doubt in taken) >= size.payload_bytes:
                    break
                taken.append(self._doubts.pop(key))
        return taken
