"""The worker's accept loop."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from inbox.server import worker
from tests.unit.event_loop import in_event_loop


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@in_event_loop
async def test_connection_stays_open_if_the_worker_stops_while_it_is_accepted(listener: socket.socket) -> None:
    class Echo(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            acceptor.cancel()
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            self.transport.write(data)  # type: ignore[attr-defined]

    acceptor = asyncio.get_running_loop().create_task(worker._accept(listener, Echo))  # type: ignore[arg-type]
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    await asyncio.gather(acceptor, return_exceptions=True)
    writer.write(b"hello")
    assert await reader.readexactly(5) == b"hello"
    writer.close()
