"""5,000 polls that wait at once: how many the service holds, and how they affect memory, CPU and POSTs."""

import asyncio
import resource
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.http_load import EVENT, rate, request
from bench.rounds import Round
from bench.sample_data import create_tenants
from bench.servers import Server, cpu_seconds, ours, resident_megabytes, workers_of

ROUNDS = 5
POLLS = 5_000
TENANTS = 500
WAIT_SECONDS = 20

# Connecting, measuring and sending must fit into WAIT_SECONDS.
_OPENING_SECONDS = 7.0
_IDLE_SECONDS = 4.0
_SENDING_SECONDS = 3.0
_WARM_UP_SECONDS = 1.0
_LATE_SECONDS = 20.0
# Fewer than the backlog of the listening socket.
_OPENING_AT_ONCE = 200


@dataclass(frozen=True)
class _Figures:
    """Totals over all worker processes."""

    resident_megabytes: float
    cpu_percent: float
    posts_per_second: float


@dataclass(frozen=True)
class _Sample:
    held: int
    beside_polls: _Figures
    without: _Figures


def held(folder: Path) -> list[Round]:
    """Returns the number of polls that were held for their whole wait, and of those sent."""
    return [Round(each.held, POLLS) for each in _samples(folder)]


def memory(folder: Path) -> list[Round]:
    return _rounds(folder, "resident_megabytes")


def cpu(folder: Path) -> list[Round]:
    return _rounds(folder, "cpu_percent")


def sending(folder: Path) -> list[Round]:
    return _rounds(folder, "posts_per_second")


def _rounds(folder: Path, name: str) -> list[Round]:
    return [Round(getattr(each.beside_polls, name), getattr(each.without, name)) for each in _samples(folder)]


@cache
def _samples(folder: Path) -> list[_Sample]:
    """Cached: all rows of this file are measured in the same rounds."""
    _allow_many_connections()
    return asyncio.run(_measure(folder / "waiting_polls.db"))


def _allow_many_connections() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = POLLS + 100
    if most != resource.RLIM_INFINITY and most < needed:
        raise RuntimeError(f"The bench needs {needed} open files, but the limit is {most}. Raise `ulimit -Hn`.")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _measure(database: Path) -> list[_Sample]:
    keys = create_tenants(database, TENANTS)
    polls = [request("GET", f"/inbox?wait={WAIT_SECONDS}", keys[number % TENANTS]) for number in range(POLLS)]
    with ours(database) as server:
        post = request("POST", "/events", server.key, EVENT)
        await asyncio.to_thread(rate, server.target, post, _WARM_UP_SECONDS)
        return [await _sample(server, polls, post) for _ in range(ROUNDS)]


async def _sample(server: Server, polls: list[bytes], post: bytes) -> _Sample:
    without = await _figures(server, post)
    opening = asyncio.Semaphore(_OPENING_AT_ONCE)
    waiting = asyncio.gather(*(_is_held(server.target, each, opening) for each in polls))
    await asyncio.sleep(_OPENING_SECONDS)
    beside_polls = await _figures(server, post)
    return _Sample(sum(await waiting), beside_polls, without)


async def _is_held(target: str, poll: bytes, opening: asyncio.Semaphore) -> bool:
    """Returns True if the service responds when the wait ends, and not before."""
    with suppress(OSError, EOFError, TimeoutError):
        async with opening:
            reader, writer = await asyncio.open_connection(*target.split(":"))
            # Set before the write, since the service may respond before the write returns.
            sent_at = time.monotonic()
            writer.write(poll)
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_SECONDS + _LATE_SECONDS)
            return head.startswith(b"HTTP/1.1 200 ") and time.monotonic() - sent_at >= WAIT_SECONDS
        finally:
            writer.close()
    return False


async def _figures(server: Server, post: bytes) -> _Figures:
    before, began = cpu_seconds(server), time.monotonic()
    await asyncio.sleep(_IDLE_SECONDS)
    share = (cpu_seconds(server) - before) / (time.monotonic() - began)
    megabytes = sum(map(resident_megabytes, workers_of(server)))
    return _Figures(megabytes, 100 * share, await asyncio.to_thread(rate, server.target, post, _SENDING_SECONDS))
