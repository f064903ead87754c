"""Long polls on a real server: who wakes them, who ends them, and that they keep nobody from sending."""

import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.e2e.consumers import ALL_SCOPES, Client
from tests.exposition import Exposition
from tests.service import Service, until

# Long enough for a request to reach its place, or for a client's end to be noticed there.
A_MOMENT_SECONDS = 1


def waiting_polls(service: Service) -> float:
    return Exposition(requests.get(f"{service.url}/metrics", timeout=30).text).value("inbox_waiting_polls")


def open_wait(service: Service, key: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=30)
    connection.sendall(f"GET /inbox?wait=20 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
    return connection


def test_an_event_sent_through_another_process_ends_the_wait(new_service: Callable[[], Service]) -> None:
    one, other = new_service(), new_service()
    other.variables["INBOX_STORE"] = one.environment["INBOX_STORE"]
    key = one.create_key("acme")
    one.start()
    other.start()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(Client(one, key).get, "/inbox?wait=20")
        time.sleep(A_MOMENT_SECONDS)
        assert not waiting.done()
        sent = Client(other, key).send({"n": 1})
        assert [event["id"] for event in waiting.result()] == [sent]


def test_more_waits_than_threads_keep_nobody_from_sending(service: Service) -> None:
    service.variables["INBOX_THREADS"] = "2"
    key = service.create_key("acme")
    client = Client(service, key)
    other_key = service.create_key("globex")
    service.start()
    with ThreadPoolExecutor(30) as pool:
        waiting = [pool.submit(client.get, "/inbox?limit=1&wait=20") for _ in range(30)]
        until(lambda: waiting_polls(service) == len(waiting))
        for number in range(20):
            Client(service, other_key).send({"n": number})
        assert not any(each.done() for each in waiting)
        sent = [client.send({"n": number}) for number in range(len(waiting))]
        taken = [event["id"] for each in waiting for event in each.result()]
    assert sorted(taken) == sorted(sent)


def test_a_client_that_hangs_up_leaves_its_place_and_takes_nothing(service: Service) -> None:
    service.variables |= {"INBOX_WORKERS": "1", "INBOX_THREADS": "2"}
    key = service.create_key("acme")
    client = Client(service, key)
    service.start()
    with open_wait(service, key):
        time.sleep(A_MOMENT_SECONDS)
        assert client.get("/inbox?wait=2") == []
    time.sleep(A_MOMENT_SECONDS)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.get, "/inbox?wait=20")
        time.sleep(A_MOMENT_SECONDS)
        assert not waiting.done()
        sent = client.send({"n": 1})
        assert [event["id"] for event in waiting.result()] == [sent]


def test_a_client_that_is_gone_when_an_event_comes_does_not_take_it(service: Service) -> None:
    key = service.create_key("acme")
    client = Client(service, key)
    service.start()
    with open_wait(service, key):
        time.sleep(A_MOMENT_SECONDS)
    sent = client.send({"n": 1})
    time.sleep(A_MOMENT_SECONDS)
    assert [event["id"] for event in client.get("/inbox?mode=peek")] == [sent]


def test_removed_inbox_and_revoked_key_end_the_wait(service: Service) -> None:
    service.variables |= {"INBOX_WORKERS": "1", "INBOX_KEY_CACHE_SECONDS": "0"}
    key, manager = service.create_key("acme"), Client(service, service.create_key("acme", *ALL_SCOPES))
    service.start()
    assert manager.call("PUT", "/inboxes/crm").status_code == 201
    with ThreadPoolExecutor(2) as pool:
        of_inbox, of_key = (
            pool.submit(Client(service, key).call, "GET", path) for path in ("/inbox/crm?wait=20", "/inbox?wait=20")
        )
        until(lambda: waiting_polls(service) == 2)
        assert manager.call("DELETE", "/inboxes/crm").status_code == 204
        assert of_inbox.result().status_code == 404
        (key_id,) = (each["key_id"] for each in manager.get("/keys") if "tenant:manage" not in each["scopes"])
        assert manager.call("DELETE", f"/keys/{key_id}").status_code == 204
        assert of_key.result().status_code == 401


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_waits_are_answered_when_the_service_stops(service: Service, stop: signal.Signals) -> None:
    key = service.create_key("acme")
    service.start()
    with open_wait(service, key) as connection:
        time.sleep(A_MOMENT_SECONDS)
        service.ask_to_stop(stop)
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"\r\n\r\n[]\n")
    service.wait_until_stopped()
