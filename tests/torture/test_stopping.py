"""Stopping the service: it finishes requests, cuts off requests that hang, and exits within ten seconds."""

import itertools
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import apsw
import pytest
import requests

from tests.e2e.consumers import Client
from tests.e2e.test_waiting import count_waiting_polls
from tests.service import Service, bearer, until
from tests.torture.fault_proxy import Fault, FaultProxy
from tests.torture.raw_http import Connection, format_head, format_post, open_connections
from tests.torture.stored_events import read_events

# Long enough for the service to handle a signal, or to start a write.
A_MOMENT_SECONDS = 0.5
# Ten seconds are promised; two more are for a busy machine.
LIMIT_SECONDS = 12
EVENT = b'{"n":1}'


def wait_until_stopped(*services: Service, asked_at: float) -> None:
    deadline = asked_at + LIMIT_SECONDS
    for service in services:
        service.wait_until_stopped(deadline - time.monotonic())


def read_payloads(service: Service) -> list[str]:
    return [event.payload for event in read_events(service.folder / "inbox.db")]


def begin_event(connection: Connection, key: str) -> None:
    """Sends a request without its body. Returns when the service waits for the body."""
    connection.send(format_post(key, b"", "Expect: 100-continue", length=len(EVENT)))
    assert connection.read_response().status == 100


@pytest.mark.parametrize(
    "signals",
    [[signal.SIGTERM, signal.SIGTERM], [signal.SIGINT], [signal.SIGQUIT]],
    ids=["TERM twice", "INT", "QUIT"],
)
def test_stop_finishes_requests_that_have_begun(service: Service, signals: list[signal.Signals]) -> None:
    key = service.create_key("acme")
    service.start()
    with open_connections(service, 3) as (idle, slow, waiting):
        idle.send(format_head("GET", "/healthz", key))
        assert idle.read_response().status == 200
        begin_event(slow, key)
        waiting.send(format_head("GET", "/inbox?wait=20", key))
        until(lambda: count_waiting_polls(service) == 1)
        asked_at = time.monotonic()
        for each in signals:
            service.signal_master(each)
            time.sleep(A_MOMENT_SECONDS)
        assert idle.read_responses() == []
        assert [each.json() for each in waiting.read_responses()] == [[]]
        slow.send(EVENT)
        assert [each.status for each in slow.read_responses()] == [201]
        wait_until_stopped(service, asked_at=asked_at)
    assert read_payloads(service) == ['{"n":1}']


def test_stop_under_load_ends_waiting_polls_and_keeps_accepted_events(service: Service, torture: bool) -> None:
    waiting_key, key = service.create_key("globex"), service.create_key("acme")
    service.start()
    accepted: list[str] = []

    def send(number: int) -> None:
        with suppress(requests.RequestException), requests.Session() as session:
            for count in itertools.count():
                payload = f'{{"n":"{number}-{count}"}}'
                headers = bearer(key) | {"Content-Type": "application/json"}
                response = session.post(f"{service.url}/events", payload, headers=headers, timeout=30)
                if response.status_code != 201:
                    break
                accepted.append(payload)

    with ThreadPoolExecutor(8) as producers, open_connections(service, 1000 if torture else 60) as waiting:
        for connection in waiting:
            connection.send(format_head("GET", "/inbox?wait=20", waiting_key))
        until(lambda: count_waiting_polls(service) == len(waiting))
        for number in range(8):
            producers.submit(send, number)
        until(lambda: len(accepted) > 100)
        asked_at = time.monotonic()
        service.signal_master()
        responses = [connection.read_responses() for connection in waiting]
        wait_until_stopped(service, asked_at=asked_at)
    assert [[(each.status, each.json()) for each in response] for response in responses] == [[(200, [])]] * len(waiting)
    stored = read_payloads(service)
    assert set(accepted) <= set(stored)
    # Up to one event per producer is stored without a response.
    assert len(stored) <= len(accepted) + 8


@pytest.mark.parametrize("how", ["reload", "a worker alone"])
def test_replaced_worker_finishes_its_requests(service: Service, how: str) -> None:
    key = service.create_key("acme")
    service.start()
    old = service.worker_pids
    with open_connections(service, 7) as (waiting, *slow):
        waiting.send(format_head("GET", "/inbox?wait=20", key))
        until(lambda: count_waiting_polls(service) == 1)
        for connection in slow:
            begin_event(connection, key)
        if how == "reload":
            service.signal_master(signal.SIGHUP)
        else:
            service.signal_workers(signal.SIGTERM, old)
        assert [each.json() for each in waiting.read_responses()] == [[]]
        for connection in slow:
            connection.send(EVENT)
            assert [each.status for each in connection.read_responses()] == [201]
    until(lambda: len(service.worker_pids) == len(old) and not {*service.worker_pids} & {*old}, LIMIT_SECONDS)
    assert [event["payload"] for event in Client(service, key).get("/inbox")] == [{"n": 1}] * len(slow)


def test_write_that_waits_for_a_lock_is_finished(service: Service) -> None:
    key = service.create_key("acme")
    service.start()
    assert Client(service, key).get("/inbox") == []
    other = apsw.Connection(f"{service.folder}/inbox.db")
    other.execute("BEGIN IMMEDIATE")
    with Connection(service) as blocked:
        begin_event(blocked, key)
        blocked.send(EVENT)
        time.sleep(A_MOMENT_SECONDS)
        asked_at = time.monotonic()
        service.signal_master()
        time.sleep(A_MOMENT_SECONDS)
        other.close()
        assert [each.status for each in blocked.read_responses()] == [201]
        wait_until_stopped(service, asked_at=asked_at)
    assert read_payloads(service) == ['{"n":1}']


def test_stop_cuts_off_requests_that_hang(new_service: Callable[[], Service], moto_url: str) -> None:
    on_file, on_dynamodb = new_service(), new_service()
    key = on_file.create_key("acme")
    on_file.start()
    large = {"payload": {"text": "x" * 200_000}}
    for _ in range(4):
        assert Client(on_file, key).call("POST", "/events/batch", json=[large] * 10).status_code == 201
    proxy = FaultProxy(moto_url, seed=0)
    with proxy.run():
        on_dynamodb.keep_in_dynamodb(proxy.url)
        on_dynamodb.run("init")
        other_key = on_dynamodb.create_key("acme")
        on_dynamodb.start()
        # Both workers have to know the key.
        for _ in range(4):
            Client(on_dynamodb, other_key).call("GET", "/me")
        proxy.odds = {Fault.DROPPED: 1}
        with Connection(on_dynamodb) as dropped, open_connections(on_file, 2) as (unread, unfinished):
            dropped.send(format_post(other_key, EVENT))
            unread.send(format_head("GET", "/inbox?limit=500", key))
            begin_event(unfinished, key)
            until(lambda: proxy.injected[Fault.DROPPED] > 0)
            assert unread.socket.recv(1, socket.MSG_PEEK)
            asked_at = time.monotonic()
            for service in (on_file, on_dynamodb):
                service.signal_master()
            wait_until_stopped(on_file, on_dynamodb, asked_at=asked_at)
            # Without a complete response, the client knows that nothing was promised.
            assert [each.status for each in dropped.read_responses()] in ([], [503])
            assert unfinished.read_responses() == []
            [incomplete] = unread.read_responses()
            assert len(incomplete.body) < int(incomplete.headers["content-length"])
    assert len(read_payloads(on_file)) == 40
