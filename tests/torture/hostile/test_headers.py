"""Header floods, malformed and repeated headers."""

import json

import pytest

from tests.torture.hostile.target import SECRET, Target, Tenant, is_problem

EVENT = json.dumps({"secret": SECRET})
JSON = "Content-Type: application/json"


def test_floods_of_headers_are_a_400(target: Target, victim: Tenant) -> None:
    head = f"POST /events HTTP/1.1\r\nHost: x\r\n{victim.authorization}\r\n{JSON}\r\nContent-Length: {len(EVENT)}\r\n"
    for flood in (
        "".join(f"X-{number}: {SECRET}\r\n" for number in range(101)),
        "".join(f"X-{number}: {'y' * 8_000}\r\n" for number in range(120)),
        f"X-Long: {'y' * 9_000}\r\n",
        f"{'X' * 9_000}: y\r\n",
        f"Cookie: {SECRET * 1_000}\r\n",
    ):
        [response] = target.exchange(f"{head}{flood}\r\n{EVENT}")
        assert is_problem(response, 400, "bad-request"), flood[:20]
    for path in (f"/{'x' * 8_200}", f"/{'x' * 100_000}", f"/inbox?{'x' * 8_200}", f"/{'x/' * 5_000}"):
        assert is_problem(target.request("GET", path, victim.authorization), 400, "bad-request")
    assert victim.list_events() == []


def test_request_without_valid_host_is_a_400(target: Target, victim: Tenant) -> None:
    [response] = target.exchange(f"GET /inbox HTTP/1.1\r\n{victim.authorization}\r\n\r\n")
    assert is_problem(response, 400, "bad-request")
    for host in ("a b", "a/b", "a@b", "a\xe9", "a?b", "a#b"):
        [response] = target.exchange(f"GET /inbox HTTP/1.1\r\nHost: {host}\r\n{victim.authorization}\r\n\r\n")
        assert is_problem(response, 400, "bad-request"), host
    [response] = target.exchange(f"GET /inbox HTTP/1.0\r\n{victim.authorization}\r\n\r\n")
    assert response.status == 200


@pytest.mark.parametrize(
    "line",
    [
        "X-Request-Id: a\r\n b",
        "X-Request-Id: a\r\n\tb",
        "X-Request-Id: a\nX-Other: b",
        "X-Request-Id: a\rX-Other: b",
        "X-Request-Id: a\0b",
        "X-Request-Id: a\x7f",
        "X-Request-Id: a\x1b[31m",
        "X Request Id: a",
        "X-Request-Id : a",
        "X-Request-Id\0: a",
        "X-R\xe9quest-Id: a",
        "X-Request-Id",
        ": a",
        " X-Request-Id: a",
        "Host: y",
        "Content-Type: application/json",
        # gunicorn quotes this value in its error message.
        f"Expect: {SECRET}",
        f"{SECRET} X: a",
        f"{SECRET}",
        f"Transfer-Encoding: {SECRET}",
    ],
)
def test_broken_head_is_a_400_and_stores_nothing(target: Target, victim: Tenant, line: str) -> None:
    response = target.request("POST", "/events", victim.authorization, JSON, line, body=EVENT)
    assert is_problem(response, 400, "bad-request")
    assert victim.list_events() == []


def test_repeated_idempotency_key_or_attempt_is_a_400(target: Target, victim: Tenant) -> None:
    sent = target.request("POST", "/events", victim.authorization, JSON, "Idempotency-Key: k", body=EVENT)
    assert sent.status == 201
    before = victim.list_events()
    for second in ("k", "other", ""):
        headers = [victim.authorization, JSON, "Idempotency-Key: k", f"idempotency-key: {second}"]
        for path, body in (("/events", EVENT), ("/events/batch", f"[{EVENT}]")):
            assert is_problem(target.request("POST", path, *headers, body=body), 400, "bad-request")
        headers = [victim.authorization, "Inbox-Attempt: a", f"inbox-attempt: {second}"]
        assert is_problem(target.request("GET", "/inbox", *headers), 400, "bad-request")
    assert victim.list_events() == before
