"""Requests with wrong lengths, incomplete requests and pipelined ones: the responses, and what is stored."""

import json
import uuid

import pytest

from tests.e2e.consumers import ALL_SCOPES, Client
from tests.service import Service
from tests.torture.raw_http import AS_JSON, Connection, Response, format_chunks, format_head, format_post

EVENT = b'{"a": 1}'
MAX_EVENT_BYTES = 262_144
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
CONTINUE = "Expect: 100-continue"
IN_CHUNKS = (AS_JSON, "Transfer-Encoding: chunked")


@pytest.fixture
def service(running_service: Service) -> Service:
    return running_service


@pytest.fixture
def key(service: Service) -> str:
    return service.create_key(f"t-{uuid.uuid4().hex}")


def exchange(service: Service, *pieces: bytes) -> list[Response]:
    """Sends the pieces, half-closes the connection, and returns all responses."""
    with Connection(service) as connection:
        for piece in pieces:
            connection.send(piece)
        connection.half_close()
        return connection.read_responses()


def assert_refused(service: Service, request: bytes, status: int) -> None:
    """Checks that the only response has this status, and that the service closes the connection."""
    with Connection(service) as connection:
        connection.send(request)
        (response,) = connection.read_responses()
    assert (response.status, response.headers["connection"]) == (status, "close"), request[:500]


def exchange_statuses(service: Service, *pieces: bytes) -> list[int]:
    return [response.status for response in exchange(service, *pieces)]


def list_payloads(service: Service, key: str) -> list[object]:
    return [event["payload"] for event in Client(service, key).get("/events?order=oldest")]


def test_half_closed_connection_gets_its_response(service: Service, key: str) -> None:
    assert exchange_statuses(service, format_post(key, EVENT)) == [201]
    (polled,) = exchange(service, format_head("GET", "/inbox?wait=5", key))
    assert [event["payload"] for event in polled.json()] == [{"a": 1}]


def test_incomplete_body_is_a_400(service: Service, key: str) -> None:
    for request in (
        format_post(key, EVENT, length=50),
        format_post(key, EVENT, length=200_000),
        format_post(key, EVENT, CONTINUE, length=50),
        format_chunks(key, EVENT),
        format_chunks(key, EVENT) + b"5\r\n",
    ):
        *_, last = exchange(service, request)
        assert last.status == 400, request
    assert list_payloads(service, key) == []


def test_trailers_and_extensions_above_the_limit_of_heads_are_a_400(service: Service, key: str) -> None:
    start = format_head("POST", "/events", key, *IN_CHUNKS)
    for request in (
        b"8;" + b"x" * 70_000 + b"\r\n" + EVENT + b"\r\n0\r\n\r\n",
        b"8\r\n" + EVENT + b"\r\n0\r\n" + b"X: y\r\n" * 12_000 + b"\r\n",
        b"8\r\n" + EVENT + b"\r\n0\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
    ):
        assert_refused(service, start + request + HEALTH, 400)
    assert list_payloads(service, key) == []


def test_chunks_above_the_limit_are_a_413_and_close_the_connection(service: Service, key: str) -> None:
    requests = [format_post(key, EVENT)] * 10
    assert_refused(service, format_chunks(key, b'{"a": "', b"x" * (MAX_EVENT_BYTES + 100_000), *requests), 413)
    assert list_payloads(service, key) == []


def test_endless_chunks_are_cut_off(service: Service, key: str) -> None:
    with Connection(service) as connection:
        connection.send(format_chunks(key, b'{"a": "'))
        piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        while connection.try_to_send(piece):
            pass
    assert list_payloads(service, key) == []


def test_length_above_the_limit_is_a_413_and_closes_the_connection(service: Service, key: str) -> None:
    for length in (MAX_EVENT_BYTES + 1, 10**12, 2**64 - 1):
        assert_refused(service, format_post(key, EVENT, length=length) + HEALTH, 413)
    assert list_payloads(service, key) == []


def test_refusal_closes_the_connection_if_its_body_is_incomplete(service: Service) -> None:
    assert_refused(service, format_post("", b"x" * 70_000, length=200_000), 401)


def test_request_refused_by_its_head_gets_no_100_and_closes(service: Service, key: str) -> None:
    reader = service.create_key(f"t-{uuid.uuid4().hex}", "--scope", "inbox:read")
    length = f"Content-Length: {len(EVENT)}"
    for status, request in (
        (401, format_head("POST", "/events", "nonsense", AS_JSON, length, CONTINUE)),
        (401, format_head("POST", "/events", "nonsense", *IN_CHUNKS, CONTINUE)),
        (401, format_head("DELETE", f"/events/{uuid.uuid4()}", "nonsense", length, CONTINUE)),
        (403, format_head("POST", "/events", reader, AS_JSON, length, CONTINUE)),
        (404, format_head("POST", "/nowhere", key, AS_JSON, length, CONTINUE)),
        (405, format_head("POST", "/inbox", key, AS_JSON, length, CONTINUE)),
        (413, format_head("POST", "/events", key, AS_JSON, f"Content-Length: {MAX_EVENT_BYTES + 1}", CONTINUE)),
        (415, format_head("POST", "/events", key, "Content-Type: text/plain", length, CONTINUE)),
    ):
        assert_refused(service, request, status)
    assert list_payloads(service, key) == []


def test_continue_is_sent_for_chunks_and_not_without_a_body(service: Service, key: str) -> None:
    with Connection(service) as connection:
        connection.send(format_head("POST", "/events", key, *IN_CHUNKS, CONTINUE))
        assert connection.read_response().status == 100
        connection.send(b"8\r\n" + EVENT + b"\r\n0\r\n\r\n")
        assert connection.read_response().status == 201
        connection.send(format_head("GET", "/inbox", key, CONTINUE))
        polled = connection.read_response()
    assert (polled.status, polled.headers["connection"]) == (200, "keep-alive")
    assert [event["payload"] for event in polled.json()] == [{"a": 1}]


@pytest.mark.parametrize(
    "lines",
    [
        ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: eA=="),
        ("Connection: keep-alive, Upgrade", "Upgrade: WebSocket"),
        ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"),
        ("Connection: Upgrade", "Upgrade: TLS/1.0, HTTP/2.0"),
    ],
)
def test_upgrade_is_ignored(service: Service, key: str, lines: tuple[str, ...]) -> None:
    sent, polled = exchange(service, format_post(key, EVENT, *lines) + format_head("GET", "/inbox", key, *lines))
    assert (sent.status, polled.status) == (201, 200)
    assert [event["payload"] for event in polled.json()] == [{"a": 1}]


BROKEN_BODIES = {
    "shorter than announced": ("Content-Length: 50", b"{}"),
    "much shorter than announced": ("Content-Length: 200000", b"{}"),
    "ends within a chunk": ("Transfer-Encoding: chunked", b"5\r\n{}"),
    "bad size of a chunk": ("Transfer-Encoding: chunked", b"ZZ\r\n{}\r\n0\r\n\r\n"),
    "ends without the last chunk": ("Transfer-Encoding: chunked", b"2\r\n{}\r\n"),
}


def test_broken_body_is_a_400_and_changes_nothing(service: Service) -> None:
    tenant = f"t-{uuid.uuid4().hex}"
    key, admin = service.create_key(tenant, *ALL_SCOPES), service.create_key("system", "--scope", "admin")
    client = Client(service, key)
    client.send({"n": 1})
    (event,) = client.get("/inbox")
    assert client.call("PUT", "/inboxes/crm").status_code == 201
    (own_key,) = (each["key_id"] for each in client.get("/keys"))
    for broken, (length, body) in BROKEN_BODIES.items():
        for method, path, caller in (
            ("DELETE", f"/events/{event['id']}", key),
            ("POST", f"/events/{event['id']}/replay", key),
            ("POST", "/events/replay", key),
            ("PUT", "/inboxes/other", key),
            ("DELETE", "/inboxes/crm", key),
            ("POST", "/keys", key),
            ("POST", f"/keys/{own_key}/rotate", key),
            ("DELETE", f"/keys/{own_key}", key),
            ("DELETE", f"/admin/tenants/{tenant}", admin),
            ("POST", f"/admin/tenants/{tenant}/restore", admin),
            ("POST", f"/admin/tenants/{tenant}/keys", admin),
        ):
            request = format_head(method, path, caller, AS_JSON, length) + body
            assert exchange_statuses(service, request) == [400], (broken, method, path)
    assert [(each["id"], each["status"]) for each in client.get("/events")] == [(event["id"], "delivered")]
    assert [inbox["name"] for inbox in client.get("/inboxes")] == ["crm"]
    assert [each["status"] for each in client.get("/keys")] == ["active"]


def test_well_formed_body_is_ignored_if_the_route_takes_none(service: Service, key: str) -> None:
    client = Client(service, key)
    client.send({"n": 1})
    (event,) = client.get("/inbox")
    in_chunks = ("Transfer-Encoding: chunked", b"5\r\nhello\r\n0\r\n\r\n")
    for length, body in (("Content-Length: 5", b"hello"), in_chunks, ("Content-Length: 100000", b"x" * 100_000)):
        request = format_head("POST", f"/events/{event['id']}/replay", key, length) + body
        assert exchange_statuses(service, request + HEALTH) == [200, 200]
    too_large = format_head("POST", f"/events/{event['id']}/replay", key, f"Content-Length: {MAX_EVENT_BYTES + 1}")
    assert exchange_statuses(service, too_large) == [413]


def test_pipelined_requests_get_responses_in_order(service: Service, key: str) -> None:
    events = [{"n": number} for number in range(20)]
    requests = [format_post(key, json.dumps(event).encode()) for event in events]
    with Connection(service) as connection:
        # An empty line before a request is ignored (RFC 9112, 2.2).
        sent = b"\r\n".join([b"", *requests, format_head("GET", "/inbox", key)])
        # Pieces end in the middle of requests.
        for start in range(0, len(sent), 1000):
            connection.send(sent[start : start + 1000])
        *sent_responses, polled = [connection.read_response() for _ in range(21)]
    assert [each.status for each in (*sent_responses, polled)] == [201] * 20 + [200]
    assert [event["payload"] for event in polled.json()] == events
    assert [event["id"] for event in polled.json()] == [each.json()["id"] for each in sent_responses]
