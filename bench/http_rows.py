"""Rows that compare requests to the service with an empty Flask view, or with a loop on SQLite."""

from pathlib import Path

from bench import sqlite_loops
from bench.http_load import BATCH_SIZE, EVENT, EVENTS, PEEK, drive, format_request, measure_rate
from bench.rounds import Round
from bench.sample_data import add_events
from bench.servers import run_reference, run_service

# Many short rounds, so that noise hits both sides of a round.
ROUNDS = 9
SECONDS = 2.0
WARM_UP_SECONDS = 0.5
EVENTS_TO_POLL = 60_000
OUR_WORKER = "inbox.server.worker.InboxWorker"


def measure_posts(folder: Path) -> list[Round]:
    return _against_empty_view(folder / "one_event.db", "POST", "/events", EVENT)


def measure_empty_polls(folder: Path) -> list[Round]:
    return _against_empty_view(folder / "empty_inbox.db", "GET", "/inbox", b"")


def measure_peeks(folder: Path) -> list[Round]:
    database = folder / "peek.db"
    add_events(database, count=1)
    return _against_empty_view(database, "GET", PEEK, b"")


def _against_empty_view(database: Path, method: str, path: str, body: bytes) -> list[Round]:
    """Returns responses per second."""
    with run_service(database) as server, run_reference() as empty_view:
        # The empty view reads the same headers and body.
        to_service, to_view = (format_request(method, target_path, server.key, body) for target_path in (path, "/"))
        return _measure_alternately((server.target, to_service), (empty_view.target, to_view))


def measure_our_worker(_folder: Path) -> list[Round]:
    """Returns responses per second of the empty view, on our worker and on gthread."""
    with run_reference(OUR_WORKER) as on_ours, run_reference() as on_gthread:
        get = format_request("GET", "/")
        return _measure_alternately((on_ours.target, get), (on_gthread.target, get))


def _measure_alternately(one: tuple[str, bytes], other: tuple[str, bytes]) -> list[Round]:
    """Returns responses per second of two servers, each given as its target and a request, measured in turns."""
    for each in (one, other):
        measure_rate(*each, WARM_UP_SECONDS)
    return [Round(measure_rate(*one, SECONDS), measure_rate(*other, SECONDS)) for _ in range(ROUNDS)]


def measure_batches(folder: Path) -> list[Round]:
    """Returns events per second, in transactions of a hundred."""
    loop_database = folder / "loop_batches.db"
    add_events(loop_database, count=0)
    with run_service(folder / "batches.db") as server:
        post = format_request("POST", "/events/batch", server.key, EVENTS)

        def measure_service(seconds: float) -> float:
            counts = drive(server.target, post, "--seconds", str(seconds))
            return counts.events / counts.seconds

        measure_service(WARM_UP_SECONDS)
        return [
            Round(measure_service(SECONDS), sqlite_loops.insert(loop_database, BATCH_SIZE, SECONDS))
            for _ in range(ROUNDS)
        ]


def measure_polls(folder: Path) -> list[Round]:
    """Returns events per second, in polls of a hundred.

    The service and the loop use one database, which is filled before each run.
    """
    database = folder / "until_empty.db"
    with run_service(database) as server:
        poll = format_request("GET", f"/inbox?limit={BATCH_SIZE}", server.key)

        def measure_service(events: int) -> float:
            add_events(database, count=events)
            counts = drive(server.target, poll, "--until-empty")
            if counts.events != events:
                raise RuntimeError(f"polls returned {counts.events} events instead of {events}")
            return counts.events / counts.seconds

        def measure_loop() -> float:
            add_events(database, count=EVENTS_TO_POLL)
            return sqlite_loops.claim(database, BATCH_SIZE, EVENTS_TO_POLL)

        measure_service(EVENTS_TO_POLL // 10)
        return [Round(measure_service(EVENTS_TO_POLL), measure_loop()) for _ in range(ROUNDS)]
