"""Memory of a worker after many events, compared with its memory after the first of them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.http_load import BATCH, EVENT, EVENTS, drive, request
from bench.rounds import Round
from bench.servers import Server, resident_megabytes, run_service, worker_pids

ROUNDS = 5
FIRST_EVENTS = 10_000
ALL_EVENTS = 200_000
_REPEATS = 4
# One in this many events is sent alone, the others in batches.
_SINGLE_SHARE = 50


def measure_growth(folder: Path) -> list[Round]:
    """Returns megabytes of a worker after ALL_EVENTS and, as the reference, after FIRST_EVENTS."""
    # In parallel, because speed does not matter.
    with ThreadPoolExecutor(ROUNDS) as pool:
        return list(pool.map(_round, [folder / f"memory_{number}.db" for number in range(ROUNDS)]))


def _round(database: Path) -> Round:
    with run_service(database, workers=1) as server:
        _send_and_poll(server, FIRST_EVENTS)
        (worker,) = worker_pids(server)
        after_first = resident_megabytes(worker)
        for _ in range(_REPEATS):
            _send_and_poll(server, (ALL_EVENTS - FIRST_EVENTS) // _REPEATS)
        return Round(resident_megabytes(worker), after_first)


def _send_and_poll(server: Server, events: int) -> None:
    single_events = events // _SINGLE_SHARE // BATCH * BATCH
    drive(server.target, request("POST", "/events", server.key, EVENT), "--responses", str(single_events))
    batches = request("POST", "/events/batch", server.key, EVENTS)
    drive(server.target, batches, "--responses", str((events - single_events) // BATCH))
    polled = drive(server.target, request("GET", f"/inbox?limit={BATCH}", server.key), "--until-empty")
    if polled.events != events:
        raise RuntimeError(f"polls returned {polled.events} events instead of {events}")
