"""Compares this checkout with another one: requests per second, and CPU time of the workers per request."""

import tempfile
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from bench.http_load import EVENT, EVENTS, PEEK, drive, format_request
from bench.rounds import Bound, Goal, Round
from bench.servers import Server, cpu_seconds, run_service
from bench.table import Measurement

ROUNDS = 5
SECONDS = 2.0
WARM_UP_SECONDS = 1.0
AGAINST = "the other checkout"


@dataclass(frozen=True)
class _Case:
    """A request that is measured on both checkouts."""

    method: str
    path: str
    body: bytes = b""
    events_before: int = 0


_CASES = {
    "POST /events": _Case("POST", "/events", EVENT),
    "POST /events/batch of 100": _Case("POST", "/events/batch", EVENTS),
    "GET /inbox, empty": _Case("GET", "/inbox"),
    "GET /inbox, peek of 1": _Case("GET", PEEK, events_before=1),
}


@dataclass(frozen=True)
class _Cost:
    requests_per_second: float
    cpu_ms: float


def inbox_command(checkout: Path) -> Path:
    return checkout.absolute() / ".venv" / "bin" / "inbox"


def list_measurements(checkout: Path) -> list[Measurement]:
    """Returns the rows. The goals tolerate a tenth, because a checkout compared with itself gave up to 1.07."""
    faster, cheaper = Goal(Bound.AT_LEAST, 0.9), Goal(Bound.AT_MOST, 1.1)
    return [
        measurement
        for name, case in _CASES.items()
        for measurement in (
            Measurement(
                name, "requests/s", AGAINST, faster, partial(_rounds_of, "requests_per_second", checkout, case)
            ),
            Measurement(f"{name}: CPU", "ms", AGAINST, cheaper, partial(_rounds_of, "cpu_ms", checkout, case)),
        )
    ]


def _rounds_of(attribute: str, checkout: Path, case: _Case, folder: Path) -> list[Round]:
    return [
        Round(getattr(this, attribute), getattr(other, attribute))
        for this, other in _cached_costs(checkout, case, folder)
    ]


@cache
def _cached_costs(checkout: Path, case: _Case, folder: Path) -> list[tuple[_Cost, _Cost]]:
    """Returns the costs on both checkouts. Cached, because both rows of a request are measured in the same rounds."""
    return [_measure_round(checkout, case, Path(tempfile.mkdtemp(dir=folder))) for _ in range(ROUNDS)]


def _measure_round(checkout: Path, case: _Case, folder: Path) -> tuple[_Cost, _Cost]:
    """Returns the costs on new servers. With the same servers for all rounds, a checkout against itself gave 0.86."""
    with (
        run_service(folder / "this.db") as this,
        run_service(folder / "other.db", inbox=str(inbox_command(checkout))) as other,
    ):
        for server in (this, other):
            if case.events_before:
                # Not with SQL, because the other checkout may have another schema.
                post = format_request("POST", "/events", server.key, EVENT)
                drive(server.target, post, "--responses", str(case.events_before))
            _measure(server, case, WARM_UP_SECONDS)
        # In this order, neither is always measured first.
        first, second, third, fourth = (_measure(server, case, SECONDS) for server in (this, other, other, this))
        return _mean(first, fourth), _mean(second, third)


def _mean(one: _Cost, other: _Cost) -> _Cost:
    return _Cost((one.requests_per_second + other.requests_per_second) / 2, (one.cpu_ms + other.cpu_ms) / 2)


def _measure(server: Server, case: _Case, seconds: float) -> _Cost:
    before = cpu_seconds(server)
    counts = drive(
        server.target, format_request(case.method, case.path, server.key, case.body), "--seconds", str(seconds)
    )
    cpu_ms = 1000 * (cpu_seconds(server) - before) / counts.good
    return _Cost(counts.good / counts.seconds, cpu_ms)
