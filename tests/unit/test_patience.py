"""How long a socket waits for a slow client, and which of them makes room for others."""

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from inbox.patience import BYTES_PER_SECOND, PAUSE_SECONDS, NotYet, PatientSocket, Places, TooSlow

Pair = tuple[PatientSocket, socket.socket]
GRACE = 0.01
LOOK = socket.MSG_PEEK | socket.MSG_DONTWAIT


@pytest.fixture(autouse=True)
def _haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inbox.patience.GRACE_SECONDS", GRACE)


@pytest.fixture
def connect() -> Iterator[Callable[..., Pair]]:
    """Our end, and the client's."""
    with ExitStack() as stack:

        def pair(places: Places | None = None) -> Pair:
            accepted, client = socket.socketpair()
            ours = PatientSocket(accepted, places or Places(1))
            stack.enter_context(ours)
            stack.enter_context(client)
            return ours, client

        yield pair


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def wait_until_waiting(places: Places, count: int, *who: PatientSocket) -> None:
    deadline = time.monotonic() + 30
    while len(places._slow_since) < count or not places._slow_since.keys() >= {*who}:
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """In seconds, each in vain. No other time passes."""
    waits: list[float] = []
    monkeypatch.setattr("inbox.patience.time", SimpleNamespace(monotonic=lambda: sum(waits)))

    def has(_ours: PatientSocket, _event: int, milliseconds: float) -> bool:
        waits.append(milliseconds / 1000)
        return False

    monkeypatch.setattr(PatientSocket, "_has", has)
    return waits


def test_it_waits_for_what_comes_late(connect: Callable[..., Pair], pool: ThreadPoolExecutor) -> None:
    places = Places(1)
    ours, client = connect(places)
    received = pool.submit(ours.recv, 10)
    wait_until_waiting(places, 1)
    client.send(b"late")
    assert received.result() == b"late"
    assert not places._slow_since


def test_a_pause_may_be_so_long(connect: Callable[..., Pair], waits: list[float]) -> None:
    ours, _client = connect()
    with pytest.raises(TooSlow):
        ours.recv(10)
    assert sum(waits) == pytest.approx(PAUSE_SECONDS)


def test_pauses_may_be_so_long_in_all(
    connect: Callable[..., Pair], pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inbox.patience.BODY_SECONDS", 0.1)
    ours, client = connect()

    def receive() -> int:
        pieces = 0
        try:
            while ours.recv(1):
                pieces += 1
        except TooSlow:
            return pieces
        return 0

    client.send(b"x")
    received: Future[int] = pool.submit(receive)
    for _ in range(2000):
        if received.done():
            break
        client.send(b"x")
        time.sleep(0.005)
    client.close()
    assert received.result()


def test_a_body_that_keeps_pace_has_longer(
    connect: Callable[..., Pair], waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inbox.patience.BODY_SECONDS", 5)
    ours, client = connect()
    with pytest.raises(TooSlow):
        ours.recv(1)
    assert sum(waits) == pytest.approx(5)
    client.send(b"x" * BYTES_PER_SECOND)
    received = 0
    while received < BYTES_PER_SECOND:
        received += len(ours.recv(BYTES_PER_SECOND))
    with pytest.raises(TooSlow):
        ours.recv(1)
    assert sum(waits) == pytest.approx(5 + 1)


def test_the_next_request_begins_anew(connect: Callable[..., Pair], waits: list[float]) -> None:
    ours, client = connect()
    ours.expect_no_more()
    with pytest.raises(TooSlow):
        ours.recv(1)
    assert not waits
    ours.begin_request()
    with pytest.raises(TooSlow):
        ours.recv(1)
    assert waits
    client.send(b"x")
    assert ours.recv(1) == b"x"


def test_an_answer_arrives_whole_however_slowly_it_is_read(
    connect: Callable[..., Pair], pool: ThreadPoolExecutor
) -> None:
    answer = bytes(range(256)) * 20_000
    places = Places(1)
    ours, client = connect(places)
    sending = pool.submit(ours.sendall, answer)
    wait_until_waiting(places, 1)
    read = b""
    while len(read) < len(answer):
        read += client.recv(100_000)
    sending.result()
    assert read == answer


def test_an_answer_that_nobody_reads_ends(connect: Callable[..., Pair], waits: list[float]) -> None:
    ours, _client = connect()
    with pytest.raises(TooSlow):
        ours.sendall(b"x" * 5_000_000)
    assert sum(waits) == pytest.approx(PAUSE_SECONDS)


def test_who_keeps_pace_is_sent_to_although_the_system_says_that_there_is_no_room(
    connect: Callable[..., Pair], waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, client = connect()
    has = PatientSocket._has
    answer = bytes(range(256)) * 20_000
    read = b""

    def read_and_wait(*arguments: Any) -> bool:
        nonlocal read
        read += client.recv(BYTES_PER_SECOND)
        return has(*arguments)

    monkeypatch.setattr(PatientSocket, "_has", read_and_wait)
    ours.sendall(answer)
    assert sum(waits) > PAUSE_SECONDS
    ours.close()
    while piece := client.recv(BYTES_PER_SECOND):
        read += piece
    assert read == answer


def test_where_all_places_are_taken_the_slowest_is_cut(connect: Callable[..., Pair], pool: ThreadPoolExecutor) -> None:
    places = Places(2)
    (first, first_client), (second, second_client), (third, third_client) = (connect(places) for _ in range(3))
    waits = []
    for count, each in ((1, first), (2, second), (2, third)):
        waits.append(pool.submit(each.recv, 10))
        wait_until_waiting(places, count)
    with pytest.raises(TooSlow):
        waits[0].result()
    # It can still be told.
    first.sendall(b"too slow")
    assert first_client.recv(10) == b"too slow"
    for client, wait in ((second_client, waits[1]), (third_client, waits[2])):
        client.send(b"late")
        assert wait.result() == b"late"


def test_who_sends_byte_by_byte_stays_the_slowest(connect: Callable[..., Pair], pool: ThreadPoolExecutor) -> None:
    places = Places(1)
    (dribbler, dribbling_client), (other, other_client) = connect(places), connect(places)
    first_byte = pool.submit(dribbler.recv, 1)
    wait_until_waiting(places, 1)
    dribbling_client.send(b"x")
    assert first_byte.result() == b"x"
    wait = pool.submit(other.recv, 10)
    wait_until_waiting(places, 1)
    with pytest.raises(TooSlow):
        dribbler.recv(1)
    other_client.send(b"late")
    assert wait.result() == b"late"


def test_who_is_not_read_from_is_cut_too(connect: Callable[..., Pair], pool: ThreadPoolExecutor) -> None:
    places = Places(1)
    (deaf, _deaf_client), (other, other_client) = connect(places), connect(places)
    sending = pool.submit(deaf.sendall, b"x" * 5_000_000)
    wait_until_waiting(places, 1)
    wait = pool.submit(other.recv, 10)
    with pytest.raises(TooSlow):
        sending.result()
    other_client.send(b"late")
    assert wait.result() == b"late"


def test_who_keeps_pace_is_not_cut(connect: Callable[..., Pair], pool: ThreadPoolExecutor) -> None:
    places = Places(1)
    (quick, quick_client), (deaf, _deaf_client) = connect(places), connect(places)
    answer = b"x" * 5_000_000
    sending = pool.submit(quick.sendall, answer)
    wait_until_waiting(places, 1)
    read = 0
    while read < 1_000_000:
        read += len(quick_client.recv(100_000))
    # It was the first to be waited for, and pauses now; but it is ahead, and the other one has the only place.
    held_up = pool.submit(deaf.sendall, answer)
    wait_until_waiting(places, 1, deaf)
    while read < len(answer):
        read += len(quick_client.recv(100_000))
    sending.result()
    deaf.cut()
    with pytest.raises(TooSlow):
        held_up.result()


def test_a_look_takes_no_time(connect: Callable[..., Pair]) -> None:
    ours, client = connect()
    with pytest.raises(BlockingIOError):
        ours.recv(1, LOOK)
    client.close()
    assert ours.recv(1, LOOK) == b""


def test_who_gathers_waits_once(connect: Callable[..., Pair], waits: list[float]) -> None:
    ours, _client = connect()
    ours.gather(moment_ms=20)
    for _ in range(2):
        with pytest.raises(NotYet):
            ours.recv(1)
    assert waits == [0.02]


def test_timeouts_that_others_set_make_no_difference(connect: Callable[..., Pair]) -> None:
    ours, _client = connect()
    ours.settimeout(60)
    ours.setblocking(True)
    ours.gather()
    with pytest.raises(NotYet):
        ours.recv(1)
