"""Only a plain GET is a poll."""

import pytest

from tests.torture.hostile.target import Target, Tenant, is_problem

POLLS = ["/inbox", "/inbox/default", "/inbox?mode=lease"]


@pytest.mark.parametrize("path", POLLS)
def test_only_get_polls(target: Target, victim: Tenant, path: str) -> None:
    event = victim.send_secret()
    for method in ("POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "QUERY", "M-SEARCH"):
        response = target.request(method, path, victim.authorization)
        assert is_problem(response, 405, "method-not-allowed"), method
        assert "GET" in response.headers["allow"]
    for method in ("get", "Get", "gET", "GE T", "G\0T", "G\xcbT", "GE", "GETS", "", "X" * 30):
        assert is_problem(target.request(method, path, victim.authorization), 400, "bad-request"), method
    [head] = target.exchange(f"HEAD {path} HTTP/1.0\r\n{victim.authorization}\r\n\r\n")
    assert head.status == 405
    options = target.request("OPTIONS", path, victim.authorization)
    assert (options.status, options.body) == (200, b"")
    assert victim.list_events() == [(event, "undelivered", 0)]


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "_method"])
def test_no_header_chooses_the_method(target: Target, victim: Tenant, header: str) -> None:
    event = victim.send_secret()
    assert target.request("POST", "/inbox", f"{header}: GET", victim.authorization).status == 405
    assert target.request("GET", f"/events/{event}", f"{header}: DELETE", victim.authorization).status == 200
    assert target.request("GET", f"/events/{event}?_method=DELETE", victim.authorization).status == 422
    assert victim.list_events() == [(event, "undelivered", 0)]


@pytest.mark.parametrize("path", POLLS)
def test_poll_with_a_body_is_a_400_and_delivers_nothing(target: Target, victim: Tenant, path: str) -> None:
    event = victim.send_secret()
    for body in ("{}", '{"mode": "peek"}', "x" * 10_000):
        response = target.request("GET", path, "Content-Type: application/json", victim.authorization, body=body)
        assert is_problem(response, 400, "bad-request"), body[:20]
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{victim.authorization}\r\n"
    [chunked] = target.exchange(f"{head}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    assert is_problem(chunked, 400, "bad-request")
    assert victim.list_events() == [(event, "undelivered", 0)]
    # Some clients send these headers without a body.
    headers = ["Content-Length: 0", "Content-Type: text/plain", victim.authorization]
    assert target.request("GET", path, *headers).status == 200
