"""Being asked to stop: what has begun is finished, what hangs is cut off, and it is over within ten seconds."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import apsw
import pytest
import requests

from tests.service import Service, bearer

# Long enough for a request to reach its place.
A_MOMENT_SECONDS = 0.5
# Ten are promised; the others are for a machine that is busy with something else.
LIMIT_SECONDS = 12


class Raw:
    """A client of which every byte is our own."""

    def __init__(self, service: Service, key: str) -> None:
        self._port, self._key = service.port, key

    def request(self, line: str, headers: str = "", body: bytes = b"") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self._port), timeout=30)
        head = f"{line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._key}\r\n{headers}\r\n"
        connection.sendall(head.encode() + body)
        return connection

    def post(self, body: bytes, length: int) -> socket.socket:
        headers = f"Content-Type: application/json\r\nContent-Length: {length}\r\n"
        return self.request("POST /events", headers, body)


def answer_on(connection: socket.socket) -> bytes:
    """All that comes, until it is closed or cut."""
    answer = b""
    with connection, suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            answer += piece
    return answer


def wait_until_stopped(*services: Service) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    for service in services:
        assert service._process is not None
        service._process.wait(deadline - time.monotonic())
        service._process = None


def payloads_in(service: Service) -> list[str]:
    store = apsw.Connection(f"{service.folder}/inbox.db")
    assert store.pragma("integrity_check") == "ok"
    payloads = [payload for (payload,) in store.execute("SELECT payload FROM events ORDER BY seq")]
    store.close()
    return payloads


def workers_of(service: Service) -> set[int]:
    assert service._process is not None
    parent = service._process.pid
    return {int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()}


@pytest.mark.parametrize(
    "signals",
    [[signal.SIGTERM, signal.SIGTERM], [signal.SIGINT], [signal.SIGQUIT]],
    ids=["TERM twice", "INT", "QUIT"],
)
def test_what_has_begun_is_finished(service: Service, signals: list[signal.Signals]) -> None:
    key = service.create_key("acme")
    service.start()
    client = Raw(service, key)
    idle = client.request("GET /healthz")
    answer = b""
    while not answer.endswith(b'"ok"}\n'):
        answer += idle.recv(4096)
    slow = client.post(b'{"n":', length=7)
    waiting = client.request("GET /inbox?wait=20")
    time.sleep(A_MOMENT_SECONDS)
    for each in signals:
        service.ask_to_stop(each)
        time.sleep(A_MOMENT_SECONDS)
    slow.sendall(b"1}")
    assert answer_on(slow).startswith(b"HTTP/1.1 201 ")
    assert answer_on(waiting).endswith(b"\r\n\r\n[]\n")
    assert answer_on(idle) == b""
    wait_until_stopped(service)
    assert payloads_in(service) == ['{"n":1}']


@pytest.mark.parametrize("how", ["reload", "a worker alone"])
def test_a_worker_that_is_replaced_finishes_what_it_has(service: Service, how: str) -> None:
    key = service.create_key("acme")
    service.start()
    client = Raw(service, key)
    slow = [client.post(b'{"n":', length=7) for _ in range(6)]
    waiting = client.request("GET /inbox?wait=20")
    time.sleep(A_MOMENT_SECONDS)
    old = workers_of(service)
    if how == "reload":
        service.ask_to_stop(signal.SIGHUP)
    else:
        for pid in old:
            os.kill(pid, signal.SIGTERM)
    assert answer_on(waiting).endswith(b"\r\n\r\n[]\n")
    for connection in slow:
        connection.sendall(b"1}")
        assert answer_on(connection).startswith(b"HTTP/1.1 201 ")
    deadline = time.monotonic() + LIMIT_SECONDS
    while workers_of(service) & old or len(workers_of(service)) < len(old):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    answer = requests.get(f"{service.url}/inbox", headers=bearer(key), timeout=30)
    assert [event["payload"] for event in answer.json()] == [{"n": 1}] * len(slow)


def test_a_write_that_waits_for_a_lock_is_answered(service: Service) -> None:
    key = service.create_key("acme")
    service.start()
    client = Raw(service, key)
    requests.get(f"{service.url}/inbox", headers=bearer(key), timeout=30)
    other = apsw.Connection(f"{service.folder}/inbox.db")
    other.execute("BEGIN IMMEDIATE")
    post = client.post(b'{"n":1}', length=7)
    time.sleep(A_MOMENT_SECONDS)
    service.ask_to_stop()
    time.sleep(A_MOMENT_SECONDS)
    other.close()
    assert answer_on(post).startswith(b"HTTP/1.1 201 ")
    wait_until_stopped(service)
    assert payloads_in(service) == ['{"n":1}']


def test_what_hangs_is_cut_off(new_service: Callable[[], Service], moto_url: str) -> None:
    on_file, on_dynamodb = new_service(), new_service()
    key = on_file.create_key("acme")
    on_file.start()
    client = Raw(on_file, key)
    large = {"payload": {"text": "x" * 200_000}}
    for _ in range(4):
        sent = requests.post(f"{on_file.url}/events/batch", json=[large] * 10, headers=bearer(key), timeout=30)
        assert sent.status_code == 201
    with tapped(moto_url) as (url, cut):
        on_dynamodb.keep_in_dynamodb(url)
        on_dynamodb.run("init")
        other_key = on_dynamodb.create_key("acme")
        on_dynamodb.start()
        for _ in range(4):  # until both workers know the key
            requests.get(f"{on_dynamodb.url}/me", headers=bearer(other_key), timeout=30)
        cut()
        unanswered = Raw(on_dynamodb, other_key).post(b'{"n":1}', length=7)
        unread = client.request("GET /inbox?limit=500")
        unfinished = client.post(b'{"n":', length=7)
        time.sleep(A_MOMENT_SECONDS)
        for service in (on_file, on_dynamodb):
            service.ask_to_stop()
        wait_until_stopped(on_file, on_dynamodb)
    # Whoever sees no answer, or half of one, knows that nothing was promised.
    assert answer_on(unanswered)[:13] in (b"", b"HTTP/1.1 503 ")
    assert answer_on(unfinished) == b""
    head, _, body = answer_on(unread).partition(b"\r\n\r\n")
    assert len(body) < int(head.lower().partition(b"content-length: ")[2].split()[0])
    assert len(payloads_in(on_file)) == 40


@contextmanager
def tapped(url: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """The URL of something that passes everything on, until it is cut: then it takes all and answers nothing."""
    target = urlsplit(url)
    is_cut = threading.Event()
    connections: list[socket.socket] = []

    def pass_on(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65_536):
                if not is_cut.is_set():
                    sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection((target.hostname, target.port))
                connections.extend((near, far))
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=pass_on, args=pair, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", is_cut.set
        finally:
            # Not close alone: it would not wake the threads that read.
            for each in (listener, *connections):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()
