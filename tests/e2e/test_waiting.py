"""Long polls on a real server: what ends them, and that they do not block other requests."""

import socket
from concurrent.futures import ThreadPoolExecutor

import requests

from tests.e2e.consumers import ALL_SCOPES, Client
from tests.exposition import Exposition
from tests.service import Service, until


def count_waiting_polls(service: Service) -> float:
    return Exposition(requests.get(f"{service.url}/metrics", timeout=30).text).value("inbox_waiting_polls")


def start_long_poll(service: Service, key: str) -> socket.socket:
    """Returns the connection on which the poll waits."""
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=30)
    connection.sendall(f"GET /inbox?wait=20 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
    return connection


def test_event_sent_through_another_service_ends_the_wait(tenant: Client, service: Service) -> None:
    service.variables["INBOX_STORE"] = tenant.service.environment["INBOX_STORE"]
    service.start()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(tenant.get, "/inbox?wait=20")
        until(lambda: count_waiting_polls(tenant.service) == 1)
        sent = Client(service, tenant.key).send({"n": 1})
        assert [event["id"] for event in waiting.result()] == [sent]


def test_more_waiting_polls_than_threads_do_not_block_producers(service: Service) -> None:
    service.variables["INBOX_THREADS"] = "2"
    client, other = (Client(service, service.create_key(each)) for each in ("acme", "globex"))
    service.start()
    with ThreadPoolExecutor(30) as pool:
        waiting = [pool.submit(client.get, "/inbox?limit=1&wait=20") for _ in range(30)]
        until(lambda: count_waiting_polls(service) == len(waiting))
        for number in range(20):
            other.send({"n": number})
        assert not any(each.done() for each in waiting)
        sent = [client.send({"n": number}) for number in range(len(waiting))]
        polled = [event["id"] for each in waiting for event in each.result()]
    assert sorted(polled) == sorted(sent)


def test_client_that_disconnects_ends_its_wait_and_claims_nothing(tenant: Client) -> None:
    with start_long_poll(tenant.service, tenant.key):
        until(lambda: count_waiting_polls(tenant.service) == 1)
    until(lambda: count_waiting_polls(tenant.service) == 0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(tenant.get, "/inbox?wait=20")
        until(lambda: count_waiting_polls(tenant.service) == 1)
        sent = tenant.send({"n": 1})
        assert [event["id"] for event in waiting.result()] == [sent]


def test_deleted_inbox_and_revoked_key_end_the_wait(service: Service) -> None:
    service.variables |= {"INBOX_WORKERS": "1", "INBOX_KEY_CACHE_SECONDS": "0"}
    key, manager = service.create_key("acme"), Client(service, service.create_key("acme", *ALL_SCOPES))
    service.start()
    assert manager.call("PUT", "/inboxes/crm").status_code == 201
    with ThreadPoolExecutor(2) as pool:
        inbox_poll, key_poll = (
            pool.submit(Client(service, key).call, "GET", path) for path in ("/inbox/crm?wait=20", "/inbox?wait=20")
        )
        until(lambda: count_waiting_polls(service) == 2)
        assert manager.call("DELETE", "/inboxes/crm").status_code == 204
        assert inbox_poll.result().status_code == 404
        (key_id,) = (each["key_id"] for each in manager.get("/keys") if "tenant:manage" not in each["scopes"])
        assert manager.call("DELETE", f"/keys/{key_id}").status_code == 204
        assert key_poll.result().status_code == 401
