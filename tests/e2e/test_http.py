"""Chunked bodies, broken requests, the log and the stop of a real server."""

import json
import socket
import time
from collections.abc import Iterable

import pytest
import requests

from tests.e2e.consumers import Client
from tests.service import Service, bearer


def send_raw(service: Service, text: str) -> tuple[str, dict[str, str], bytes]:
    """Sends a request. Returns the status line, the headers and the body of the response."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(text.encode("latin-1"))
        connection.shutdown(socket.SHUT_WR)
        response = b""
        while piece := connection.recv(4096):
            response += piece
    head, _, body = response.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    return status, dict(line.split(": ", 1) for line in lines), body


def test_chunked_body_is_accepted_up_to_the_limit(tenant: Client) -> None:
    def post(pieces: Iterable[bytes] | bytes) -> requests.Response:
        headers = bearer(tenant.key) | {"Content-Type": "application/json"}
        return requests.post(f"{tenant.service.url}/events", data=pieces, headers=headers, timeout=30)

    assert post(iter([b'{"payload": ', b'{"a": 1}}'])).status_code == 201
    assert post(iter([b'{"payload": {"a": "', *[b"x" * 1000] * 300, b'"}}'])).status_code == 413
    # The first 256 KiB of this body are valid JSON.
    assert post(iter([b'{"a": 1}', *[b" " * 1000] * 300, b"x"])).status_code == 413
    # The service responds before it has read the body.
    assert post(b'{"a": "' + b"x" * 5_000_000 + b'"}').status_code == 413
    assert [event["payload"] for event in tenant.get("/inbox")] == [{"a": 1}]


@pytest.mark.parametrize(
    "request_text",
    [
        "POST /events HTTP/1.1\r\nHost: x\r\n{auth}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{}}",
        "POST /events HTTP/1.1\r\nHost: x\r\n{auth}Content-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n5\r\n{{}}",
        "POST /events HTTP/1.1\r\nHost: x\r\n{auth}Content-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\nZZ\r\n{{}}\r\n0\r\n\r\n",
        "POST /events HTTP/1.1\r\nHost: x\r\n{auth}Content-Type: application/json\r\nContent-Length: x\r\n\r\n{{}}",
        "NONSENSE\r\n\r\n",
    ],
)
def test_incomplete_request_stores_nothing(tenant: Client, request_text: str) -> None:
    status, headers, _ = send_raw(tenant.service, request_text.format(auth=f"Authorization: Bearer {tenant.key}\r\n"))
    assert status.startswith("HTTP/1.1 400 ")
    assert headers["Content-Type"] == "application/problem+json"
    assert tenant.get("/inbox") == []


def test_requests_that_the_app_does_not_receive_are_refused_with_a_problem_document(running_service: Service) -> None:
    service = running_service
    for text in (
        "NONSENSE\r\n\r\n",
        "GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: x\r\nBad Header: my-secret\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: my-secret\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: my-secret\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        f"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: {'x' * 20_000}\r\n\r\n",
        f"GET /{'x' * 9_000} HTTP/1.1\r\nHost: x\r\n\r\n",
    ):
        status, headers, body = send_raw(service, text)
        assert status.startswith("HTTP/1.1 400 "), text
        assert headers["Content-Type"] == "application/problem+json"
        problem = json.loads(body)
        assert (problem["type"], problem["request_id"]) == ("/problems/bad-request", headers["X-Request-Id"])
        assert b"my-secret" not in body
        assert problem["request_id"] in service.log.read_text()
    assert "my-secret" not in service.log.read_text()


def test_client_cannot_choose_the_path_or_the_scheme(running_service: Service) -> None:
    for header in ("SCRIPT_NAME: /x", "PATH_INFO: /inbox", "X-Forwarded-Proto: https", "X-Forwarded-Ssl: on"):
        for path, status in (("/healthz", "200"), ("/x/healthz", "404")):
            request = f"GET {path} HTTP/1.1\r\nHost: x\r\n{header}\r\nConnection: close\r\n\r\n"
            assert send_raw(running_service, request)[0].split()[1] == status, (header, path)


def test_log_contains_neither_keys_nor_payloads(service: Service) -> None:
    key = service.create_key("acme")
    service.start()
    requests.post(f"{service.url}/events", json={"secret": "my-payload"}, headers=bearer(key), timeout=30)
    requests.post(f"{service.url}/events", data=b'{"my-payload": ', headers=bearer(key), timeout=30)
    requests.get(f"{service.url}/inbox?mode={key}", headers={"X-API-Key": key}, timeout=30)
    requests.get(f"{service.url}/{key}", headers={"X-Request-Id": key}, timeout=30)
    send_raw(service, f"GET / HTTP/1.1\r\nHost: x\r\nExpect: my-payload {key}\r\n\r\n")
    service.stop()

    log = service.log.read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    statuses = [line["status"] for line in lines if line["event"] == "request" and line["route"] != "/readyz"]
    assert statuses == [201, 415, 422, 404]
    assert "unsupported expectation" in log
    assert "my-payload" not in log
    assert key[4:20] not in log


def test_stop_waits_for_requests_that_have_begun(service: Service) -> None:
    key = service.create_key("acme")
    service.start()
    head = f"POST /events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(f"{head}Content-Length: 10\r\nExpect: 100-continue\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 100 ")
        service.signal_master()
        time.sleep(0.3)
        connection.sendall(b'{"a": 123}')
        assert connection.recv(4096).startswith(b"HTTP/1.1 201 ")
    service.stop()
    service.start()
    events = requests.get(f"{service.url}/inbox", headers=bearer(key), timeout=30).json()
    assert [event["payload"] for event in events] == [{"a": 123}]
