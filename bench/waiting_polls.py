"""5,000 polls that wait at once: how many the service holds, and how they affect memory, CPU and POSTs."""

import asyncio
import resource
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.http_load import EVENT, format_request, measure_rate
from bench.rounds import Round
from bench.sample_data import create_tenants
from bench.servers import Server, cpu_seconds, resident_megabytes, run_service, worker_pids

ROUNDS = 5
POLLS = 5_000
TENANTS = 500
WAIT_SECONDS = 20

# Connecting, measuring and sending must fit into WAIT_SECONDS.
_OPENING_SECONDS = 7.0
_IDLE_SECONDS = 4.0
_POSTING_SECONDS = 3.0
_WARM_UP_SECONDS = 1.0
_GRACE_SECONDS = 20.0
# Fewer than the backlog of the listening socket.
_MAX_OPENING = 200


@dataclass(frozen=True)
class _Figures:
    """Totals over all worker processes."""

    resident_megabytes: float
    cpu_percent: float
    posts_per_second: float


@dataclass(frozen=True)
class _Sample:
    held: int
    with_polls: _Figures
    without_polls: _Figures


def measure_held(folder: Path) -> list[Round]:
    """Returns how many polls got their response when their wait ended and, as the reference, how many were sent."""
    return [Round(each.held, POLLS) for each in _cached_samples(folder)]


def measure_memory(folder: Path) -> list[Round]:
    """Returns megabytes with the polls and, as the reference, without them."""
    return _rounds_of(folder, "resident_megabytes")


def measure_cpu(folder: Path) -> list[Round]:
    """Returns percent of a core with the polls and, as the reference, without them."""
    return _rounds_of(folder, "cpu_percent")


def measure_posts(folder: Path) -> list[Round]:
    """Returns POSTs per second with the polls and, as the reference, without them."""
    return _rounds_of(folder, "posts_per_second")


def _rounds_of(folder: Path, name: str) -> list[Round]:
    return [
        Round(getattr(each.with_polls, name), getattr(each.without_polls, name)) for each in _cached_samples(folder)
    ]


@cache
def _cached_samples(folder: Path) -> list[_Sample]:
    """Returns a sample per round. Cached, because all rows of this file are measured in the same rounds."""
    _allow_many_connections()
    return asyncio.run(_measure_samples(folder / "waiting_polls.db"))


def _allow_many_connections() -> None:
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = POLLS + 100
    if hard_limit != resource.RLIM_INFINITY and hard_limit < needed:
        raise RuntimeError(f"The bench needs {needed} open files, but the limit is {hard_limit}. Raise `ulimit -Hn`.")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


async def _measure_samples(database: Path) -> list[_Sample]:
    keys = create_tenants(database, TENANTS)
    polls = [format_request("GET", f"/inbox?wait={WAIT_SECONDS}", keys[number % TENANTS]) for number in range(POLLS)]
    with run_service(database) as server:
        post = format_request("POST", "/events", server.key, EVENT)
        await asyncio.to_thread(measure_rate, server.target, post, _WARM_UP_SECONDS)
        return [await _measure_sample(server, polls, post) for _ in range(ROUNDS)]


async def _measure_sample(server: Server, polls: list[bytes], post: bytes) -> _Sample:
    without_polls = await _measure_figures(server, post)
    opening = asyncio.Semaphore(_MAX_OPENING)
    waiting = asyncio.gather(*(_is_held(server.target, each, opening) for each in polls))
    await asyncio.sleep(_OPENING_SECONDS)
    with_polls = await _measure_figures(server, post)
    return _Sample(sum(await waiting), with_polls, without_polls)


async def _is_held(target: str, poll: bytes, opening: asyncio.Semaphore) -> bool:
    """Returns True if the service responds when the wait ends, and not before."""
    with suppress(OSError, EOFError, TimeoutError):
        async with opening:
            reader, writer = await asyncio.open_connection(*target.split(":"))
            # Set before the write, since the service may respond before the write returns.
            sent_at = time.monotonic()
            writer.write(poll)
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_SECONDS + _GRACE_SECONDS)
            return head.startswith(b"HTTP/1.1 200 ") and time.monotonic() - sent_at >= WAIT_SECONDS
        finally:
            writer.close()
    return False


async def _measure_figures(server: Server, post: bytes) -> _Figures:
    before, began = cpu_seconds(server), time.monotonic()
    await asyncio.sleep(_IDLE_SECONDS)
    share = (cpu_seconds(server) - before) / (time.monotonic() - began)
    megabytes = sum(map(resident_megabytes, worker_pids(server)))
    posts_per_second = await asyncio.to_thread(measure_rate, server.target, post, _POSTING_SECONDS)
    return _Figures(megabytes, 100 * share, posts_per_second)
