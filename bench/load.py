"""A load generator in a process of its own: keep-alive connections that send the same request again and again.

    python -m bench.load HOST:PORT CONNECTIONS SECONDS < request

Prints how many answers came back with a 2xx, and how many did not, as JSON.
"""

import asyncio
import json
import sys
import time


async def _drive(host: str, port: int, request: bytes, deadline: float, counts: dict[str, int]) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    while time.monotonic() < deadline:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        counts["good" if head.startswith(b"HTTP/1.1 2") else "bad"] += 1
    writer.close()
    await writer.wait_closed()


async def _main(target: str, connections: int, seconds: float) -> None:
    host, port = target.split(":")
    request = sys.stdin.buffer.read()
    counts = {"good": 0, "bad": 0}
    deadline = time.monotonic() + seconds
    await asyncio.gather(*(_drive(host, int(port), request, deadline, counts) for _ in range(connections)))
    sys.stdout.write(json.dumps(counts))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
