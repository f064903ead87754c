"""How much a million stored events slow down a poll and a POST."""

import time
from contextlib import closing
from pathlib import Path

import apsw

from bench.http_load import EVENT, rate, request
from bench.rounds import Round
from bench.sample_data import TENANT, fill
from bench.servers import ours
from inbox.domain.events import DEFAULT_INBOX, PageSize
from inbox.settings import Settings
from inbox.store.sqlite import SQLiteStore

SHALLOW = 1_000
DEEP = 1_000_000

POLL_ROUNDS = 15
POLLS = 10
POST_ROUNDS = 9
POST_SECONDS = 2.0
WARM_UP_SECONDS = 0.5

_ANY_SIZE = 1 << 40
_BACK_TO_SHALLOW = "DELETE FROM events WHERE seq > (SELECT min(seq) FROM events) + ?"


def poll(folder: Path) -> list[Round]:
    """Returns milliseconds for a claim of 100 by the store. HTTP would hide the difference."""
    with closing(_store(_deep(folder))) as deep:
        # Ten polls empty the small store, so each round has its own.
        return [_poll_by_poll(deep, folder / f"shallow_{number}.db") for number in range(POLL_ROUNDS)]


def _poll_by_poll(deep: SQLiteStore, path: Path) -> Round:
    """Polls both stores in turn, so that noise hits both."""
    fill(path, waiting=SHALLOW + 100)
    with closing(_store(path)) as shallow:
        # The first poll of a new connection takes longer.
        _poll(shallow)
        seconds = [(_poll(deep), _poll(shallow)) for _ in range(POLLS)]
    return Round(*(1000 * sum(each) / POLLS for each in zip(*seconds, strict=True)))


def _poll(store: SQLiteStore) -> float:
    started = time.perf_counter()
    page = store.events.claim(TENANT, DEFAULT_INBOX, PageSize(100, _ANY_SIZE), store.now_ms())
    seconds = time.perf_counter() - started
    if len(page.events) != 100:
        raise RuntimeError(f"the poll returned {len(page.events)} events instead of 100")
    return seconds


def post(folder: Path) -> list[Round]:
    """Returns milliseconds between responses, with all connections busy."""
    shallow = folder / "shallow.db"
    fill(shallow, waiting=SHALLOW)
    with ours(_deep(folder)) as at_deep, ours(shallow) as at_shallow:
        to_deep, to_shallow = (request("POST", "/events", server.key, EVENT) for server in (at_deep, at_shallow))
        rate(at_deep.target, to_deep, WARM_UP_SECONDS)
        rate(at_shallow.target, to_shallow, WARM_UP_SECONDS)
        rounds = []
        for _ in range(POST_ROUNDS):
            _make_shallow_again(shallow)
            deep = rate(at_deep.target, to_deep, POST_SECONDS)
            rounds.append(Round(1000 / deep, 1000 / rate(at_shallow.target, to_shallow, POST_SECONDS)))
        return rounds


def _make_shallow_again(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.set_busy_timeout(5000)
        connection.execute(_BACK_TO_SHALLOW, (SHALLOW - 1,))


def _deep(folder: Path) -> Path:
    """Creates the large store once, because the events that a row adds or removes do not matter."""
    path = folder / "deep.db"
    if not path.exists():
        fill(path, waiting=DEEP)
    return path


def _store(path: Path) -> SQLiteStore:
    return SQLiteStore(path, Settings().max_deliveries)
