"""Index entries that this process has claimed, or has seen gone.

The index goes on showing them for a while, and trying them again would cost a write each.
"""

import threading
from collections.abc import Iterable

from cachetools import TTLCache

from inbox.store.dynamodb.event_states import Entry

_MAX = 20_000
_SECONDS = 10


class Spent:
    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._entries: TTLCache[Entry, bool] = TTLCache(_MAX, _SECONDS)

    def __contains__(self, entry: Entry) -> bool:
        with self._mutex:
            return entry in self._entries

    def without_them(self, entries: Iterable[Entry]) -> list[Entry]:
        with self._mutex:
            return [entry for entry in entries if entry not in self._entries]

    def add(self, entries: Iterable[Entry]) -> None:
        with self._mutex:
            self._entries.update(dict.fromkeys(entries, True))
