"""When a thread stays with its connection, and when it goes back to the others."""

import socket
from collections import deque
from collections.abc import Iterator
from io import BytesIO
from types import SimpleNamespace

import pytest

from inbox.worker import InboxWorker

THREADS = 4


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> InboxWorker:
    # Without gunicorn's own beginnings, which need an arbiter.
    monkeypatch.setattr("inbox.worker.ThreadWorker.__init__", lambda worker, cfg: setattr(worker, "cfg", cfg))
    worker = InboxWorker(SimpleNamespace(threads=THREADS))
    worker.alive = True
    return worker


@pytest.fixture
def connection() -> Iterator[SimpleNamespace]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        parser = SimpleNamespace(unreader=SimpleNamespace(buf=BytesIO()))
        yield SimpleNamespace(sock=ours, client=theirs, parser=parser)


def serve(worker: InboxWorker, connection: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, *outcomes: object) -> int:
    """How many requests a thread serves, where each takes a byte and ends as told."""
    left = deque(outcomes)

    def handle(_worker: InboxWorker, conn: SimpleNamespace) -> object:
        conn.sock.recv(1)
        return left.popleft()

    monkeypatch.setattr("inbox.worker.ThreadWorker.handle", handle)
    worker.handle(connection)
    return len(outcomes) - len(left)


def test_a_thread_stays_for_requests_that_follow_closely(
    worker: InboxWorker, connection: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.client.send(b"123")

    assert serve(worker, connection, monkeypatch, True, True, True, True) == 3


@pytest.mark.parametrize("end", [False, object()])
def test_it_leaves_a_connection_that_is_closed_or_deferred(
    worker: InboxWorker, connection: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, end: object
) -> None:
    connection.client.send(b"123")

    assert serve(worker, connection, monkeypatch, True, end, True) == 2


def test_it_goes_back_where_most_threads_are_busy_however_much_there_is_to_do(
    worker: InboxWorker, connection: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.client.send(b"123")
    others = [None] * (THREADS * 3 // 4)
    worker._busy.extend(others)

    assert serve(worker, connection, monkeypatch, True, True) == 1
    assert list(worker._busy) == others


def test_it_goes_back_where_the_worker_stops(
    worker: InboxWorker, connection: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.client.send(b"123")
    worker.alive = False

    assert serve(worker, connection, monkeypatch, True, True) == 1


def test_what_the_parser_has_read_already_is_left_to_gunicorn(
    worker: InboxWorker, connection: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.client.send(b"123")
    connection.parser.unreader.buf.write(b"GET")

    assert serve(worker, connection, monkeypatch, True, True) == 1


def test_a_thread_that_fails_counts_as_busy_no_more(
    worker: InboxWorker, connection: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.client.send(b"1")

    with pytest.raises(IndexError):
        serve(worker, connection, monkeypatch)
    assert not worker._busy
