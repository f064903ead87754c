"""Memory of a worker after many events, compared with its memory after the first of them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.http_load import BATCH, EVENT, EVENTS, drive, request
from bench.rounds import Round
from bench.servers import Server, ours, resident_megabytes, workers_of

ROUNDS = 5
FIRST = 10_000
ALL = 200_000
_BLOCKS = 4
# One in this many events is sent alone, the others in batches.
_ALONE = 50


def growth(folder: Path) -> list[Round]:
    """Returns megabytes of a worker after ALL and after FIRST events. Rounds run in parallel: speed does not matter."""
    with ThreadPoolExecutor(ROUNDS) as pool:
        return list(pool.map(_round, [folder / f"memory_{number}.db" for number in range(ROUNDS)]))


def _round(database: Path) -> Round:
    with ours(database, workers=1) as server:
        _pass_through(server, FIRST)
        (worker,) = workers_of(server)
        after_first = resident_megabytes(worker)
        for _ in range(_BLOCKS):
            _pass_through(server, (ALL - FIRST) // _BLOCKS)
        return Round(resident_megabytes(worker), after_first)


def _pass_through(server: Server, events: int) -> None:
    alone = events // _ALONE // BATCH * BATCH
    drive(server.target, request("POST", "/events", server.key, EVENT), "--responses", str(alone))
    batches = request("POST", "/events/batch", server.key, EVENTS)
    drive(server.target, batches, "--responses", str((events - alone) // BATCH))
    polled = drive(server.target, request("GET", f"/inbox?limit={BATCH}", server.key), "--until-empty")
    if polled.events != events:
        raise RuntimeError(f"polls returned {polled.events} events instead of {events}")
