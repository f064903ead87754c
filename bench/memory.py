"""Memory of a worker after many events, compared with its memory after the first of them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.http_load import BATCH_SIZE, EVENT, EVENTS, drive, format_request
from bench.rounds import Round
from bench.servers import Server, resident_megabytes, run_service, worker_pids

ROUNDS = 5
FIRST_EVENTS = 10_000
ALL_EVENTS = 200_000
_FURTHER_RUNS = 4
# Of this many events, one is sent alone, and the others in batches.
_EVENTS_PER_SINGLE_EVENT = 50


def measure_growth(folder: Path) -> list[Round]:
    """Returns megabytes of a worker after ALL_EVENTS and, as the reference, after FIRST_EVENTS."""
    # In parallel, because only memory matters.
    with ThreadPoolExecutor(ROUNDS) as pool:
        return list(pool.map(_measure_round, [folder / f"memory_{number}.db" for number in range(ROUNDS)]))


def _measure_round(database: Path) -> Round:
    with run_service(database, workers=1) as server:
        _send_and_poll(server, FIRST_EVENTS)
        (worker,) = worker_pids(server)
        after_first = resident_megabytes(worker)
        for _ in range(_FURTHER_RUNS):
            _send_and_poll(server, (ALL_EVENTS - FIRST_EVENTS) // _FURTHER_RUNS)
        return Round(resident_megabytes(worker), after_first)


def _send_and_poll(server: Server, events: int) -> None:
    single_events = events // _EVENTS_PER_SINGLE_EVENT // BATCH_SIZE * BATCH_SIZE
    drive(server.target, format_request("POST", "/events", server.key, EVENT), "--responses", str(single_events))
    batches = format_request("POST", "/events/batch", server.key, EVENTS)
    drive(server.target, batches, "--responses", str((events - single_events) // BATCH_SIZE))
    polled = drive(server.target, format_request("GET", f"/inbox?limit={BATCH_SIZE}", server.key), "--until-empty")
    if polled.events != events:
        raise RuntimeError(f"polls returned {polled.events} events instead of {events}")
