"""What a deep backlog costs a poll: the store itself, without HTTP, which would hide the difference."""

import tempfile
import time
from pathlib import Path

from bench.rounds import Round
from inbox.clock import now_ms
from inbox.events import DEFAULT_INBOX, NewEvent, PageSize, random_event_id
from inbox.settings import Settings
from inbox.store.sqlite import SQLiteStore

ROUNDS = 15
POLLS = 10
SHALLOW = 1_000
DEEP = 300_000

_TENANT = "bench"
_PAYLOAD = b'{"order": 1001, "total": 12.5, "currency": "EUR"}'
_ANY_SIZE = 1 << 40


def deep_backlog() -> list[Round]:
    """Milliseconds for a poll of 100 where DEEP events wait and as many are delivered, and where SHALLOW are."""
    with tempfile.TemporaryDirectory() as folder:
        deep = _filled(Path(folder, "deep.db"), DEEP)
        # A few polls empty the shallow one, so each round has its own.
        rounds = [_round(deep, _filled(Path(folder, f"{number}.db"), SHALLOW)) for number in range(ROUNDS)]
        deep.close()
    return rounds


def _filled(path: Path, depth: int) -> SQLiteStore:
    store = SQLiteStore(path, Settings().max_deliveries)
    for _ in range(2 * depth // 500):
        events = [NewEvent(random_event_id(), "order.created", _PAYLOAD) for _ in range(500)]
        store.events.put(_TENANT, events, now_ms(), expires_at_s=now_ms() // 1000 + 86_400)
    for _ in range(depth // 500):
        _poll(store, 500)
    return store


def _round(deep: SQLiteStore, shallow: SQLiteStore) -> Round:
    """Poll by poll, so that both see the same weather."""
    seconds = [(_poll(deep, 100), _poll(shallow, 100)) for _ in range(POLLS)]
    shallow.close()
    return Round(*(1000 * sum(each) / POLLS for each in zip(*seconds, strict=True)))


def _poll(store: SQLiteStore, events: int) -> float:
    started = time.perf_counter()
    page = store.events.claim(_TENANT, DEFAULT_INBOX, PageSize(events, _ANY_SIZE), now_ms())
    seconds = time.perf_counter() - started
    if len(page.events) != events:
        raise RuntimeError(f"{len(page.events)} events came instead of {events}")
    return seconds
