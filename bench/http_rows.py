"""Requests to the real server, against an empty view and against bare loops on the same database."""

from pathlib import Path

from bench import sqlite_loops
from bench.http_load import BATCH, EVENT, EVENTS, PEEK, drive, rate, request
from bench.rounds import Round
from bench.sample_data import fill
from bench.servers import ours, reference

# Many short rounds, so that noise hits both sides of a round.
ROUNDS = 9
SECONDS = 2.0
WARM_UP_SECONDS = 0.5
TO_POLL = 60_000
OUR_WORKER = "inbox.server.worker.InboxWorker"


def one_event(folder: Path) -> list[Round]:
    return _against_empty_view(folder / "one_event.db", "POST", "/events", EVENT)


def empty_inbox(folder: Path) -> list[Round]:
    return _against_empty_view(folder / "empty_inbox.db", "GET", "/inbox", b"")


def peek(folder: Path) -> list[Round]:
    database = folder / "peek.db"
    fill(database, waiting=1)
    return _against_empty_view(database, "GET", PEEK, b"")


def _against_empty_view(database: Path, method: str, path: str, body: bytes) -> list[Round]:
    """Returns responses per second."""
    with ours(database) as server, reference() as empty_view:
        # The empty view reads the same bytes.
        real, empty = (request(method, where, server.key, body) for where in (path, "/"))
        return _in_turns((server.target, real), (empty_view.target, empty))


def our_worker(_folder: Path) -> list[Round]:
    """Returns responses per second of the empty view, on our worker and on gthread."""
    with reference(OUR_WORKER) as on_ours, reference() as on_gthread:
        text = request("GET", "/")
        return _in_turns((on_ours.target, text), (on_gthread.target, text))


def _in_turns(one: tuple[str, bytes], other: tuple[str, bytes]) -> list[Round]:
    """Measures responses per second of two pairs of target and request, in turns."""
    for each in (one, other):
        rate(*each, WARM_UP_SECONDS)
    return [Round(rate(*one, SECONDS), rate(*other, SECONDS)) for _ in range(ROUNDS)]


def batches(folder: Path) -> list[Round]:
    """Returns events per second, in transactions of a hundred."""
    bare = folder / "bare_batches.db"
    fill(bare, waiting=0)
    with ours(folder / "batches.db") as server:
        text = request("POST", "/events/batch", server.key, EVENTS)

        def served(seconds: float) -> float:
            counts = drive(server.target, text, "--seconds", str(seconds))
            return counts.events / counts.seconds

        served(WARM_UP_SECONDS)
        return [Round(served(SECONDS), sqlite_loops.insert(bare, BATCH, SECONDS)) for _ in range(ROUNDS)]


def until_empty(folder: Path) -> list[Round]:
    """Returns events per second, in polls of a hundred. Both sides use one database, filled before each run."""
    database = folder / "until_empty.db"
    with ours(database) as server:
        text = request("GET", f"/inbox?limit={BATCH}", server.key)

        def served(events: int) -> float:
            fill(database, waiting=events)
            counts = drive(server.target, text, "--until-empty")
            if counts.events != events:
                raise RuntimeError(f"polls returned {counts.events} events instead of {events}")
            return counts.events / counts.seconds

        def bare() -> float:
            fill(database, waiting=TO_POLL)
            return sqlite_loops.claim(database, BATCH, TO_POLL)

        served(TO_POLL // 10)
        return [Round(served(TO_POLL), bare()) for _ in range(ROUNDS)]
