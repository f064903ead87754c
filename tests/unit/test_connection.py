"""One connection on a real socket. tests/torture sends malformed requests."""

import asyncio
import socket
import struct
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import pytest

from inbox.server import connection
from inbox.server.connection import Connection, ServerContext
from inbox.server.connections import Connections, State
from inbox.server.request_heads import base_environ
from inbox.server.thread_pool import DaemonThreads
from tests.unit.event_loop import in_event_loop, until

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LARGE_BYTES = 16 * 1024 * 1024
MAX_BODY_BYTES = 3 * LARGE_BYTES


class App:
    """Records the requested paths. `/blocked` waits for `release`, `/large` has a large response."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.release = threading.Event()

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> list[bytes]:
        self.paths.append(environ["PATH_INFO"])
        if environ["PATH_INFO"] == "/blocked":
            self.release.wait(20)
        environ["wsgi.input"].read(MAX_BODY_BYTES)
        start_response("200 OK", [])
        return [b"x" * LARGE_BYTES if environ["PATH_INFO"] == "/large" else b"ok"]


class Server:
    def __init__(self, port: int, threads: DaemonThreads, connections: Connections) -> None:
        self._port = port
        self.threads = threads
        self.connections = connections

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Streams]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2 * LARGE_BYTES)
        try:
            yield reader, writer
        finally:
            writer.close()


@asynccontextmanager
async def start_server(app: App) -> AsyncIterator[Server]:
    threads, connections = DaemonThreads("app", 1), Connections(100, 2 * LARGE_BYTES)
    environ = base_environ(("127.0.0.1", 80))
    new_connection = partial(Connection, ServerContext(app, environ, threads, connections))
    server = await asyncio.get_running_loop().create_server(new_connection, "127.0.0.1", 0)
    async with server:
        yield Server(server.sockets[0].getsockname()[1], threads, connections)
        await until(lambda: len(connections) == 0)


@pytest.fixture
def app() -> Iterator[App]:
    app = App()
    yield app
    app.release.set()


def make_get_request(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


async def read_body(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    return await reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]))


@pytest.mark.parametrize("resets", [True, False])
@in_event_loop
async def test_request_is_not_run_if_its_client_disconnects_in_the_queue(
    app: App, monkeypatch: pytest.MonkeyPatch, resets: bool
) -> None:
    monkeypatch.setattr(connection, "_HALF_CLOSE_SECONDS", 0)
    async with start_server(app) as server, server.connect() as (reader, writer):
        writer.write(make_get_request("/blocked"))
        await until(lambda: app.paths == ["/blocked"])
        async with server.connect() as (_, queued):
            queued.write(make_get_request("/queued"))
            await until(lambda: server.threads._calls.qsize() == 1)
            if resets:
                reset_on_close = struct.pack("ii", 1, 0)
                queued.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset_on_close)
        await until(lambda: any(each._is_gone for each in server.connections._all()))
        app.release.set()
        assert await read_body(reader) == b"ok"
        writer.write(make_get_request("/next"))
        assert await read_body(reader) == b"ok"
    assert app.paths == ["/blocked", "/next"]


@in_event_loop
async def test_disconnect_is_noticed_while_a_request_behind_a_large_one_runs(app: App) -> None:
    async with start_server(app) as server, server.connect() as (_, writer):
        await until(lambda: len(server.connections) == 1)
        (served,) = server.connections._all()
        # Passed in one piece, because the connection pauses reading.
        served.data_received(
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
            + bytes(100_000)
            + make_get_request("/blocked")
        )
        await until(lambda: app.paths == ["/", "/blocked"])
        writer.close()
        await until(lambda: served._received_eof)
        app.release.set()


@in_event_loop
async def test_time_of_an_upload_does_not_count_as_time_in_the_queue(app: App) -> None:
    async with start_server(app) as server, server.connect() as (reader, writer):
        writer.write(b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        await until(lambda: app.paths == ["/upload"] and bool(server.connections._by_state[State.RECEIVING]))
        assert {each._queued_at for each in server.connections._all()} == {inf}
        writer.write(bytes(100_000))
        assert await read_body(reader) == b"ok"


@in_event_loop
async def test_incomplete_head_counts_as_held_memory(app: App) -> None:
    async with start_server(app) as server, server.connect() as (_, writer):
        writer.write(b"GET / HTTP/1.1\r\n")
        await until(lambda: server.connections._held_bytes == 16)


@in_event_loop
async def test_connection_stays_usable_after_a_large_response_is_read_late(app: App) -> None:
    async with start_server(app) as server, server.connect() as (reader, writer):
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(make_get_request("/large"))
        await until(lambda: app.paths == ["/large"] and server.connections._held_bytes > 0)
        server.connections.check_deadlines()
        reader._transport.resume_reading()  # type: ignore[attr-defined]
        assert len(await read_body(reader)) == LARGE_BYTES
        await until(lambda: server.connections._held_bytes == 0)
        writer.write(make_get_request("/next"))
        server.connections.check_deadlines()
        assert await read_body(reader) == b"ok"


@pytest.mark.parametrize(
    "pieces",
    [
        (b"Content-Length: 4\r\n\r\n", b"body"),
        (b"Content-Length: 100000\r\n\r\n", b"x" * 100_000),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"0\r\n\r\n"),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"4\r\nbody\r\n", b"0\r\n\r\n"),
    ],
)
@in_event_loop
async def test_nothing_is_held_after_a_body_that_arrived_in_pieces(app: App, pieces: tuple[bytes, ...]) -> None:
    async with start_server(app) as server, server.connect() as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n")
        for piece in pieces[:-1]:
            writer.write(piece)
            await until(lambda: bool(server.connections._by_state[State.RECEIVING]))
        writer.write(pieces[-1])
        assert await read_body(reader) == b"ok"
        await until(lambda: server.connections._held_bytes == 0)


@in_event_loop
async def test_body_that_exceeds_the_memory_for_bodies_is_a_503(app: App) -> None:
    async with start_server(app) as server, server.connect() as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % MAX_BODY_BYTES)
        writer.write(bytes(MAX_BODY_BYTES))
        assert (await reader.readline()).startswith(b"HTTP/1.1 503")
        await until(lambda: server.connections._held_bytes == 0)


@in_event_loop
async def test_app_runs_before_chunks_that_only_look_complete_are_read(app: App) -> None:
    async with start_server(app) as server, server.connect() as (_, writer):
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n0\r\n\r\n\r\n")
        await until(lambda: app.paths == ["/"])


@in_event_loop
async def test_head_that_is_too_large_is_refused_even_in_one_piece(app: App) -> None:
    async with start_server(app) as server, server.connect() as (reader, writer):
        headers = b"".join(b"X-%d: %b\r\n" % (number, b"x" * 7000) for number in range(10))
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 400")
    assert app.paths == []
