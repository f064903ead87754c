"""Time from a POST to the response of a waiting poll, on an otherwise idle service."""

import asyncio
import random
import statistics
import time
from pathlib import Path

from bench.http_load import EVENT, request
from bench.rounds import Round
from bench.servers import Server, ours

ROUNDS = 5
SAMPLES = 200

_LONGEST_SECONDS = 30
_WAIT = "/inbox?wait=20"
# Long enough for the poll to wait, and random within the interval at which a process looks for new events.
_PAUSE_SECONDS = (0.03, 0.08)


def p99(folder: Path) -> list[Round]:
    """Returns the 99th percentile in milliseconds and, as the reference, the median."""
    with ours(folder / "wake_up.db") as server:
        return [asyncio.run(_round(server)) for _ in range(ROUNDS)]


async def _round(server: Server) -> Round:
    milliseconds = [1000 * await asyncio.wait_for(_sample(server), _LONGEST_SECONDS) for _ in range(SAMPLES)]
    return Round(statistics.quantiles(milliseconds, n=100)[-1], statistics.median(milliseconds))


async def _sample(server: Server) -> float:
    """Opens two new connections, which may reach the same worker process or two."""
    poll_reader, poll_writer = await asyncio.open_connection(*server.target.split(":"))
    post_reader, post_writer = await asyncio.open_connection(*server.target.split(":"))
    try:
        poll_writer.write(request("GET", _WAIT, server.key))
        answer = asyncio.create_task(poll_reader.readuntil(b"]\n"))
        await asyncio.sleep(random.uniform(*_PAUSE_SECONDS))  # noqa: S311 - no secret
        if answer.done():
            raise RuntimeError(f"A poll of an empty inbox did not wait: {await answer!r}")
        began = time.perf_counter()
        post_writer.write(request("POST", "/events", server.key, EVENT))
        text = await answer
        seconds = time.perf_counter() - began
        if b'"event_type"' not in text:
            raise RuntimeError(f"A waiting poll ended without the event: {text!r}")
        await post_reader.readuntil(b"\r\n\r\n")
        return seconds
    finally:
        poll_writer.close()
        post_writer.close()
