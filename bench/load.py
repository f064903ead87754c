"""A load generator that sends one request repeatedly on keep-alive connections.

    python -m bench.load HOST:PORT CONNECTIONS (--seconds S | --responses N | --until-empty) < request

Prints as JSON the number of 2xx and other responses, the number of events in them, and the elapsed seconds.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

# Occurs once per event in a response, and not in the payloads of this bench.
_EVENT_MARKER = b'"deliveries":'


@dataclass
class Counts:
    sent: int = 0
    good: int = 0
    bad: int = 0
    events: int = 0
    empty: int = 0
    seconds: float = 0.0


async def _drive(target: str, request: bytes, counts: Counts, is_running: Callable[[], bool]) -> None:
    reader, writer = await asyncio.open_connection(*target.split(":"))
    while is_running():
        counts.sent += 1
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        if head.startswith(b"HTTP/1.1 2"):
            counts.good += 1
        else:
            counts.bad += 1
        counts.events += body.count(_EVENT_MARKER)
        counts.empty += body == b"[]\n"
    writer.close()
    await writer.wait_closed()


async def _main(options: argparse.Namespace) -> None:
    request = sys.stdin.buffer.read()
    counts = Counts()
    started = time.monotonic()

    def is_running() -> bool:
        if options.until_empty:
            return not counts.empty
        if options.responses is not None:
            return counts.sent < int(options.responses)
        return time.monotonic() < started + float(options.seconds)

    await asyncio.gather(*(_drive(options.target, request, counts, is_running) for _ in range(options.connections)))
    counts.seconds = time.monotonic() - started
    sys.stdout.write(json.dumps(asdict(counts)))


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.load")
    parser.add_argument("target")
    parser.add_argument("connections", type=int)
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument("--seconds", type=float)
    end.add_argument("--responses", type=int)
    end.add_argument("--until-empty", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(_main(_parse_arguments()))
