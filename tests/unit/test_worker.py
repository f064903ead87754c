"""When a thread stays with its connection, and which connections are let go."""

import errno
import logging
import selectors
import socket
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.workers.gthread import PollableMethodQueue

from inbox.worker import InboxWorker, LastingQueue

THREADS = 4


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[InboxWorker]:
    # Without gunicorn's own beginnings, which need an arbiter.
    monkeypatch.setattr("inbox.lobby.ThreadWorker.__init__", lambda worker, cfg: setattr(worker, "cfg", cfg))
    worker = InboxWorker(SimpleNamespace(threads=THREADS, keepalive=75, set=lambda *_: None))
    worker.alive = True
    worker.nr_conns = 0
    worker.worker_connections = 100
    worker.log = logging.getLogger(__name__)
    worker.poller = selectors.DefaultSelector()
    yield worker
    for key in worker.poller.get_map().values():
        key.fileobj.close()
    worker.poller.close()


@pytest.fixture
def connection() -> Iterator[SimpleNamespace]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        parser = SimpleNamespace(unreader=SimpleNamespace(buf=BytesIO()), has_request=lambda _moment_ms: True)
        yield SimpleNamespace(sock=ours, client=theirs, parser=parser)


def serve(worker: InboxWorker, connection: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, *outcomes: object) -> int:
    """How many requests a thread serves, where each takes a byte and ends as told."""
    left = deque(outcomes)

    def handle(_worker: InboxWorker, conn: SimpleNamespace) -> object:
        conn.sock.recv(1)
        return left.popleft()

    monkeypatch.setattr("inbox.lobby.ThreadWorker.handle", handle)
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


def test_a_request_that_is_not_here_yet_holds_no_thread(
    worker: InboxWorker, connection: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.parser.has_request = lambda _moment_ms: False

    assert serve(worker, connection, monkeypatch, True) == 0
    assert not worker._busy


@pytest.mark.parametrize("busy", [0, THREADS])
def test_a_moment_is_waited_for_it_where_threads_are_free(
    worker: InboxWorker, connection: SimpleNamespace, busy: int
) -> None:
    moments: list[int] = []
    connection.parser.has_request = moments.append
    worker._busy.extend([None] * busy)

    worker.handle(connection)
    assert [moment > 0 for moment in moments] == [busy == 0]


class FullListener:
    def accept(self) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")


@dataclass(eq=False)
class Connection:
    sock: socket.socket
    parser: SimpleNamespace

    def close(self) -> None:
        self.sock.close()


def idle(worker: InboxWorker, connection: SimpleNamespace, requests: int) -> Connection:
    """A connection of which so many requests were served."""
    conn = Connection(sock=connection.sock.dup(), parser=SimpleNamespace(req_count=requests))
    worker.nr_conns += 1
    worker._wait_for_request(conn)
    return conn


def test_where_files_run_short_the_longest_idle_connection_is_closed(
    worker: InboxWorker, connection: SimpleNamespace
) -> None:
    served, silent, later = (idle(worker, connection, requests) for requests in (1, 0, 0))

    for gone, left in ((silent, {served, later}), (later, {served}), (served, set())):
        worker.accept(FullListener())
        assert gone.sock.fileno() == -1
        assert {*worker.keepalived_conns, *worker._new} == left
    assert worker.nr_conns == 0


def test_where_files_run_short_and_nobody_is_idle_it_pauses(
    worker: InboxWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("inbox.lobby.time.sleep", pauses.append)

    worker.accept(FullListener())
    assert len(pauses) == 1


def test_an_idle_connection_goes_where_there_are_as_many_as_there_may_be(
    worker: InboxWorker, connection: SimpleNamespace
) -> None:
    first, second = (idle(worker, connection, 0) for _ in range(2))
    worker.worker_connections = 2

    worker.murder_pending()
    assert (first.sock.fileno() == -1, second.sock.fileno() == -1) == (True, False)


def test_a_connection_that_cannot_be_waited_for_is_given_up_alone(
    worker: InboxWorker,
    connection: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    failed, full = Future[bool](), Future[bool]()
    failed.set_exception(ValueError("in its thread"))
    full.set_result(True)
    connection.parser.req_count = 1
    monkeypatch.setattr(worker.poller, "register", fail)
    for future in (failed, full):
        conn = Connection(sock=connection.sock.dup(), parser=connection.parser)
        worker.nr_conns += 1
        worker.finish_request(conn, future)
        assert conn.sock.fileno() == -1
    assert (worker.nr_conns, [*worker.keepalived_conns], len(caplog.records)) == (0, [], 2)


def test_what_was_closed_in_the_same_turn_is_not_served(worker: InboxWorker, connection: SimpleNamespace) -> None:
    idle(worker, connection, 0)
    (key,) = worker.poller.get_map().values()
    worker._make_room()

    key.data(key.fileobj)
    assert not worker._new


def test_idle_connections_go_when_their_time_is_over(
    worker: InboxWorker, connection: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    conn = idle(worker, connection, 1)
    worker.murder_pending()
    assert conn in worker.keepalived_conns

    in_time = worker.keepalived_conns[conn]
    monkeypatch.setattr("inbox.lobby.time.monotonic", lambda: in_time + 0.1)
    worker.murder_pending()
    assert not worker.keepalived_conns
    assert conn.sock.fileno() == -1


def test_more_than_so_many_unfinished_heads_are_not_waited_for(
    worker: InboxWorker, connection: SimpleNamespace
) -> None:
    worker.worker_connections = 4
    late = [idle(worker, connection, 0) for _ in range(3)]
    for conn in late:
        worker._leave(worker._new, conn)
        conn.parser = SimpleNamespace(deadline=float("inf"), awaits_body=False)
        worker._wait_for_rest(conn)

    assert list(worker._late) == late[1:]
    assert late[0].sock.fileno() == -1


def test_who_has_taken_too_long_is_not_waited_for_again(worker: InboxWorker, connection: SimpleNamespace) -> None:
    conn = idle(worker, connection, 0)
    worker._leave(worker._new, conn)
    conn.parser = SimpleNamespace(deadline=0.0, awaits_body=False)

    worker._wait_for_rest(conn)
    assert conn.sock.fileno() == -1
    assert not worker._late


def test_a_body_that_has_taken_too_long_is_given_up_and_answered(
    worker: InboxWorker, connection: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[object] = []
    monkeypatch.setattr(worker, "enqueue_req", happened.append)
    conn = idle(worker, connection, 0)
    worker._leave(worker._new, conn)
    conn.parser = SimpleNamespace(deadline=0.0, awaits_body=True, give_up=lambda: happened.append("given up"))

    worker._wait_for_rest(conn)
    conn.close()
    assert happened == ["given up", conn]


def test_a_thread_that_outlives_its_worker_writes_into_no_file_of_the_store(
    worker: InboxWorker, tmp_path: Path
) -> None:
    queue: LastingQueue = worker.method_queue
    queue.init()
    queue.close()
    files = [(tmp_path / str(number)).open("wb") for number in range(3)]
    queue.defer(lambda: None)
    assert [(tmp_path / file.name).stat().st_size for file in files] == [0, 0, 0]
    for file in files:
        file.close()
    PollableMethodQueue.close(queue)
