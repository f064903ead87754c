"""Time from a POST to the response of a waiting poll, on an otherwise idle service."""

import asyncio
import random
import statistics
import time
from pathlib import Path

from bench.http_load import EVENT, format_request
from bench.rounds import Round
from bench.servers import Server, run_service

ROUNDS = 5
SAMPLES = 200

_TIMEOUT_SECONDS = 30
_POLL_PATH = "/inbox?wait=20"
# Long enough for the poll to wait, and random within the interval at which a process looks for new events.
_PAUSE_SECONDS = (0.03, 0.08)


def measure_p99(folder: Path) -> list[Round]:
    """Returns the 99th percentile in milliseconds and, as the reference, the median."""
    with run_service(folder / "wake_up.db") as server:
        return [asyncio.run(_measure_round(server)) for _ in range(ROUNDS)]


async def _measure_round(server: Server) -> Round:
    milliseconds = [1000 * await asyncio.wait_for(_measure_latency(server), _TIMEOUT_SECONDS) for _ in range(SAMPLES)]
    return Round(statistics.quantiles(milliseconds, n=100)[-1], statistics.median(milliseconds))


async def _measure_latency(server: Server) -> float:
    """Returns the seconds from a POST to the response of a poll, each on a new connection to any worker process."""
    poll_reader, poll_writer = await asyncio.open_connection(*server.target.split(":"))
    post_reader, post_writer = await asyncio.open_connection(*server.target.split(":"))
    try:
        poll_writer.write(format_request("GET", _POLL_PATH, server.key))
        response = asyncio.create_task(poll_reader.readuntil(b"]\n"))
        await asyncio.sleep(random.uniform(*_PAUSE_SECONDS))  # noqa: S311 - no secret
        if response.done():
            raise RuntimeError(f"A poll of an empty inbox did not wait: {await response!r}")
        began = time.perf_counter()
        post_writer.write(format_request("POST", "/events", server.key, EVENT))
        body = await response
        seconds = time.perf_counter() - began
        if b'"event_type"' not in body:
            raise RuntimeError(f"A waiting poll ended without the event: {body!r}")
        await post_reader.readuntil(b"\r\n\r\n")
        return seconds
    finally:
        poll_writer.close()
        post_writer.close()
