"""Index entries that this process has claimed, is claiming, or has seen gone.

The index goes on showing them for a while, and trying them again would cost a write each. Polls that run side by side
in one process stay out of each other's way for the same reason.
"""

import threading
from collections.abc import Iterable

from cachetools import TTLCache

from inbox.store.dynamodb.states import Entry

_MOST = 20_000
_SECONDS = 10


class Spent:
    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._entries: TTLCache[Entry, bool] = TTLCache(_MOST, _SECONDS)

    def __contains__(self, entry: Entry) -> bool:
        with self._mutex:
            return entry in self._entries

    def reserve(self, entries: Iterable[Entry]) -> list[Entry]:
        """Those that were nobody's yet, and are the caller's now."""
        with self._mutex:
            free = [entry for entry in entries if entry not in self._entries]
            self._entries.update(dict.fromkeys(free, True))
        return free

    def give_back(self, entries: Iterable[Entry]) -> None:
        with self._mutex:
            for entry in entries:
                self._entries.pop(entry, None)
