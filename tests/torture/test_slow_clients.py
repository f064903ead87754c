"""Slow, idle and unresponsive clients, more than there are threads: other clients are served as usual."""

import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from threading import Event, Thread

import pytest
import requests

from tests.e2e.consumers import Client
from tests.exposition import Exposition
from tests.service import INBOX, Service, until
from tests.torture.raw_http import Connection, format_chunks, format_head, format_post, open_connections

THREADS = 4
# The server reads a small body before it runs the app. For a large body, it runs the app first.
SMALL_BYTES, LARGE_BYTES = 50_000, 200_000
# Runs the command with shorter deadlines of inbox/server/connections.py.
SHORT_DEADLINES = """
import inbox.server.connections as connections
connections.HEAD_SECONDS = connections.TRANSFER_SECONDS = 1
connections.PAUSE_SECONDS = 0.5
from inbox.cli import main
main()
"""


@pytest.fixture
def key(service: Service) -> str:
    service.variables |= {"INBOX_WORKERS": "1", "INBOX_THREADS": str(THREADS)}
    service.variables["INBOX_MAX_EVENT_BYTES"] = "1100000"
    return service.create_key("acme")


@contextmanager
def send_single_bytes(connections: Sequence[Connection], byte: bytes) -> Iterator[None]:
    """During the block, sends single bytes with pauses on all connections until the service closes them."""
    stop = Event()

    def send() -> None:
        left = set(connections)
        for connection in cycle(connections):
            if stop.wait(0.005):
                return
            if connection in left and not connection.try_to_send(byte):
                left.discard(connection)

    thread = Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def send_and_poll(client: Client, times: int) -> None:
    for number in range(times):
        sent = client.send({"n": number})
        assert [event["id"] for event in client.get("/inbox")] == [sent]


def poll_without_reading(connections: Sequence[Connection], client: Client) -> None:
    """Sends events that together are larger than the socket buffers, and polls for them without reading."""
    for _ in range(20):
        client.send({"a": "x" * LARGE_BYTES})
    for connection in connections:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.send(format_head("GET", "/inbox?mode=peek", client.key))


def has_no_error(service: Service) -> bool:
    return "Traceback" not in service.log.read_text()


def test_slow_heads_block_no_other_client(service: Service, key: str, torture: bool) -> None:
    service.start()
    with open_connections(service, 3000 if torture else 100) as slow:
        for connection in slow:
            connection.send(b"GET /inbox HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        with send_single_bytes(slow, b"x"):
            send_and_poll(Client(service, key), 200 if torture else 10)
    assert has_no_error(service)


def test_slow_bodies_block_no_other_client(service: Service, key: str, torture: bool) -> None:
    slow_key = service.create_key("globex")
    service.start()
    beginnings = (
        format_post(slow_key, b'{"a": "', length=SMALL_BYTES),
        format_post(slow_key, b'{"a": "', length=LARGE_BYTES),
        format_post(slow_key, b'{"a": "', "Expect: 100-continue", length=SMALL_BYTES),
        format_chunks(slow_key, b'{"a": "') + b"ffff\r\n",
    )
    with open_connections(service, 1000 if torture else 60) as slow:
        for connection, beginning in zip(slow, cycle(beginnings), strict=False):
            connection.send(beginning)
        with send_single_bytes(slow, b"x"):
            send_and_poll(Client(service, key), 200 if torture else 10)
    assert Client(service, slow_key).get("/events") == []
    assert has_no_error(service)


def test_clients_that_read_no_responses_block_no_other_client(service: Service, key: str, torture: bool) -> None:
    unread_key = service.create_key("globex")
    service.start()
    with open_connections(service, 300 if torture else 20) as unread:
        poll_without_reading(unread, Client(service, unread_key))
        send_and_poll(Client(service, key), 200 if torture else 10)
    assert len(Client(service, unread_key).get("/inbox?mode=peek")) == 20
    assert has_no_error(service)


def test_client_that_reads_64_kib_a_second_never_times_out(service: Service, key: str, torture: bool) -> None:
    """Reads for longer than a pause may last. With a small receive buffer, the service notices how fast it reads."""
    service.start()
    for _ in range(40):
        Client(service, key).send({"a": "x" * LARGE_BYTES})
    with Connection(service) as steady:
        steady.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        steady.send(format_head("GET", "/inbox?mode=peek", key))
        read, began, seconds = 0, time.monotonic(), 20 if torture else 1
        while (elapsed := time.monotonic() - began) < seconds:
            while read < elapsed * 70 * 1024:
                read += len(steady.socket.recv(8192))
            time.sleep(0.05)
        while read < 40 * LARGE_BYTES:
            piece = steady.socket.recv(1_000_000)
            assert piece, f"cut after {read} bytes"
            read += len(piece)
    assert has_no_error(service)


def test_connections_that_close_late_block_no_other_client(service: Service, key: str, torture: bool) -> None:
    service.start()
    with open_connections(service, 500 if torture else 40) as lingering:
        for connection in lingering:
            connection.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        send_and_poll(Client(service, key), 10)
        assert {connection.read_response().status for connection in lingering} == {200}


def test_idle_connections_block_no_other_client_and_stay_usable(service: Service, key: str, torture: bool) -> None:
    count = 10_000 if torture else 500
    service.variables["INBOX_WORKERS"] = "2"
    service.start()
    with open_connections(service, count) as idle:
        send_and_poll(Client(service, key), 100 if torture else 20)
        for connection in idle[:: count // 50]:
            connection.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.read_response().status == 200
    assert has_no_error(service)


def test_longest_idle_connections_close_if_file_descriptors_run_short(service: Service, key: str) -> None:
    service.start_process(["sh", "-c", f"ulimit -n 256; exec {INBOX} serve"], service.folder)
    with open_connections(service, 600) as idle:
        send_and_poll(Client(service, key), 10)
        last = idle[-1]
        last.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert last.read_response().status == 200
        assert idle[0].read_responses() == []
    assert has_no_error(service)


def test_all_slow_clients_together_block_no_other_client(service: Service, torture: bool) -> None:
    key, unread_key = service.create_key("acme"), service.create_key("globex")
    service.start()
    count = 500 if torture else 25
    with (
        open_connections(service, count) as slow,
        open_connections(service, count) as unread,
        open_connections(service, 2 * count),
    ):
        for connection in slow:
            connection.send(format_post(key, b'{"a": "', length=SMALL_BYTES))
        poll_without_reading(unread, Client(service, unread_key))
        until(lambda: count_polls(service) == count, 120)
        with send_single_bytes(slow, b"x"):
            for _ in range(100 if torture else 10):
                began = time.monotonic()
                Client(service, key).send({"n": 1})
                assert time.monotonic() - began < (1 if torture else 20)
    assert has_no_error(service)


def count_polls(service: Service) -> float:
    exposition = Exposition(requests.get(f"{service.url}/metrics", timeout=120).text)
    return exposition.value("inbox_requests_total", route="/inbox", method="GET", status="200")


def start_with_short_deadlines(service: Service, torture: bool) -> None:
    if torture:
        service.start()
    else:
        service.start_process([sys.executable, "-c", SHORT_DEADLINES, "serve"], service.folder)


def test_slow_head_times_out(service: Service, torture: bool) -> None:
    start_with_short_deadlines(service, torture)
    with Connection(service) as silent, Connection(service) as slow:
        silent.send(b"GET /inbox HTTP/1.1\r\nHost")
        slow.send(b"GET /inbox HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        with send_single_bytes([slow], b"x"):
            assert slow.read_responses() == []
        assert silent.read_responses() == []
    assert has_no_error(service)


def test_slow_body_times_out_with_a_400(service: Service, key: str, torture: bool) -> None:
    start_with_short_deadlines(service, torture)
    with open_connections(service, 4) as connections:
        # The incomplete body is valid JSON, so only its length shows that it is incomplete.
        for connection, length in zip(connections, (SMALL_BYTES, LARGE_BYTES, SMALL_BYTES, LARGE_BYTES), strict=True):
            connection.send(format_post(key, b'{"a": 1}', length=length))
        with send_single_bytes(connections[2:], b" "):
            for connection in connections:
                response = connection.read_response()
                assert (response.status, response.headers["connection"]) == (400, "close")
                assert response.headers["content-type"] == "application/problem+json"
    assert Client(service, key).get("/events") == []
    assert has_no_error(service)


def test_unread_response_times_out(service: Service, key: str, torture: bool) -> None:
    start_with_short_deadlines(service, torture)
    # Larger than the socket buffers of both sides.
    events = [{"a": "x" * 1_000_000}] * 16
    client = Client(service, key)
    assert client.call("POST", "/events/batch", json=events).status_code == 201
    with Connection(service) as unread:
        unread.send(format_head("GET", "/inbox?mode=peek", key))
        time.sleep(15 if torture else 4)
        read = 0
        while piece := unread.socket.recv(1_000_000):
            read += len(piece)
    assert read < 16_000_000
    assert has_no_error(service)
