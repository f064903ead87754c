"""How much a million stored events slow down a poll and a POST."""

import time
from contextlib import closing
from pathlib import Path

import apsw

from bench.http_load import EVENT, format_request, measure_rate
from bench.rounds import Round
from bench.sample_data import PAGE_SIZE, TENANT, add_events
from bench.servers import run_service
from inbox.domain.events import DEFAULT_INBOX
from inbox.settings import Settings
from inbox.store.sqlite import SQLiteStore

SHALLOW_EVENTS = 1_000
DEEP_EVENTS = 1_000_000

POLL_ROUNDS = 15
POLLS = 10
POST_ROUNDS = 9
POST_SECONDS = 2.0
WARM_UP_SECONDS = 0.5

_DELETE_ADDED_EVENTS = "DELETE FROM events WHERE seq > (SELECT min(seq) FROM events) + ?"


def measure_polls(folder: Path) -> list[Round]:
    """Returns milliseconds for a claim of 100 by the store. HTTP would hide the difference."""
    with closing(_open_store(_get_deep_database(folder))) as deep:
        # Ten polls empty the small store, so each round has its own.
        return [_measure_alternately(deep, folder / f"shallow_{number}.db") for number in range(POLL_ROUNDS)]


def _measure_alternately(deep: SQLiteStore, path: Path) -> Round:
    """Returns milliseconds. Polls both stores in turns, so that noise affects both."""
    add_events(path, count=SHALLOW_EVENTS + PAGE_SIZE.events)
    with closing(_open_store(path)) as shallow:
        # The first poll of a new connection takes longer.
        _time_claim(shallow)
        seconds = [(_time_claim(deep), _time_claim(shallow)) for _ in range(POLLS)]
    return Round(*(1000 * sum(each) / POLLS for each in zip(*seconds, strict=True)))


def _time_claim(store: SQLiteStore) -> float:
    """Returns the seconds that a claim takes."""
    started = time.perf_counter()
    page = store.events.claim(TENANT, DEFAULT_INBOX, PAGE_SIZE, store.now_ms())
    seconds = time.perf_counter() - started
    if len(page.events) != PAGE_SIZE.events:
        raise RuntimeError(f"the poll returned {len(page.events)} events instead of {PAGE_SIZE.events}")
    return seconds


def measure_posts(folder: Path) -> list[Round]:
    """Returns milliseconds from one response to the next, with all connections busy."""
    shallow = folder / "shallow.db"
    add_events(shallow, count=SHALLOW_EVENTS)
    with run_service(_get_deep_database(folder)) as deep_server, run_service(shallow) as shallow_server:
        to_deep, to_shallow = (
            format_request("POST", "/events", server.key, EVENT) for server in (deep_server, shallow_server)
        )
        measure_rate(deep_server.target, to_deep, WARM_UP_SECONDS)
        measure_rate(shallow_server.target, to_shallow, WARM_UP_SECONDS)
        rounds = []
        for _ in range(POST_ROUNDS):
            _delete_added_events(shallow)
            deep = measure_rate(deep_server.target, to_deep, POST_SECONDS)
            rounds.append(Round(1000 / deep, 1000 / measure_rate(shallow_server.target, to_shallow, POST_SECONDS)))
        return rounds


def _delete_added_events(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.set_busy_timeout(5000)
        connection.execute(_DELETE_ADDED_EVENTS, (SHALLOW_EVENTS - 1,))


def _get_deep_database(folder: Path) -> Path:
    """Returns the database that both rows share: the few events that a row adds or removes do not matter."""
    path = folder / "deep.db"
    if not path.exists():
        add_events(path, count=DEEP_EVENTS)
    return path


def _open_store(path: Path) -> SQLiteStore:
    return SQLiteStore(path, Settings().max_deliveries)
