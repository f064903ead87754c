"""Request smuggling: a request hidden inside another one is never executed."""

import json

import pytest

from tests.torture.hostile.target import SECRET, Target, Tenant, is_problem

EVENT = json.dumps({"secret": SECRET})


def format_head(tenant: Tenant, *headers: str) -> str:
    """Returns the head of a POST /events without the headers for the length of its body."""
    lines = ["POST /events HTTP/1.1", "Host: x", tenant.authorization, "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, "", ""])


def format_hidden(tenant: Tenant) -> str:
    """Returns a poll and a POST with the key of this tenant, to hide inside a request of another one."""
    poll = f"GET /inbox HTTP/1.1\r\nHost: x\r\n{tenant.authorization}\r\n\r\n"
    return poll + format_head(tenant, f"Content-Length: {len(EVENT)}") + EVENT


CHUNKED = "Transfer-Encoding: chunked"
EMPTY = "0\r\n\r\n"
# Headers whose body length a proxy may read differently, and the bytes before the hidden request.
AMBIGUOUS = {
    "CL.TE": (["Content-Length: 5", CHUNKED], EMPTY),
    "TE.CL": ([CHUNKED, "Content-Length: 5"], EMPTY),
    "CL.TE with nothing in it": (["Content-Length: 0", CHUNKED], EMPTY),
    "TE.TE, the second unknown": ([CHUNKED, "Transfer-Encoding: cow"], EMPTY),
    "TE.TE, the first unknown": (["Transfer-Encoding: cow", CHUNKED], EMPTY),
    "chunked twice": ([CHUNKED, CHUNKED], EMPTY),
    "identity first": (["Transfer-Encoding: identity", CHUNKED], EMPTY),
    "identity last": ([CHUNKED, "Transfer-Encoding: identity"], EMPTY),
    "identity alone": (["Transfer-Encoding: identity"], EMPTY),
    "identity, chunked": (["Transfer-Encoding: identity, chunked"], EMPTY),
    "chunked, identity": (["Transfer-Encoding: chunked, identity"], EMPTY),
    "gzip, chunked": (["Transfer-Encoding: gzip, chunked"], EMPTY),
    "xchunked": (["Transfer-Encoding: xchunked"], EMPTY),
    "chunked with a parameter": (["Transfer-Encoding: chunked;q=1"], EMPTY),
    "chunked in quotes": (['Transfer-Encoding: "chunked"'], EMPTY),
    "chunked and a comma": (["Transfer-Encoding: chunked,"], EMPTY),
    "no coding": (["Transfer-Encoding:", "Content-Length: 0"], ""),
    "blank before the colon": (["Transfer-Encoding : chunked"], EMPTY),
    "tab before the colon": (["Transfer-Encoding\t: chunked"], EMPTY),
    "vertical tab": (["Transfer-Encoding: \x0bchunked"], EMPTY),
    "NUL": (["Transfer-Encoding: chunked\0"], EMPTY),
    "folded": (["Transfer-Encoding:\r\n chunked"], EMPTY),
    "hidden in a folded line": (["X: y\r\n Transfer-Encoding: chunked", "Content-Length: 0"], ""),
    "hidden in a folded line, by a tab": (["X: y\r\n\tContent-Length: 500", "Content-Length: 0"], ""),
    "hidden behind a bare LF": (["X: y\nTransfer-Encoding: chunked"], EMPTY),
    "hidden behind a bare CR": (["X: y\rTransfer-Encoding: chunked", "Content-Length: 0"], ""),
    "two lengths": (["Content-Length: 0", "Content-Length: 500"], ""),
    "the same length twice": (["Content-Length: 0", "Content-Length: 0"], ""),
    "a list of lengths": (["Content-Length: 0, 500"], ""),
    "a list of equal lengths": (["Content-Length: 0, 0"], ""),
    "length +0": (["Content-Length: +0"], ""),
    "length -1": (["Content-Length: -1"], ""),
    "length 0x0": (["Content-Length: 0x0"], ""),
    "length 0_0": (["Content-Length: 0_0"], ""),
    "length in superscript": (["Content-Length: \xb2"], ""),
    "length 8.0": (["Content-Length: 8.0"], ""),
    "length in words": (["Content-Length: x"], ""),
    "length with a blank": (["Content-Length: 8 8"], ""),
    "length of 5,000 digits": ([f"Content-Length: {'9' * 5000}"], ""),
    "no length": (["Content-Length:"], ""),
    "blank before the length's colon": (["Content-Length : 0"], ""),
    "chunk size with a sign": ([CHUNKED], "+0\r\n\r\n"),
    "chunk size below zero": ([CHUNKED], "-1\r\n\r\n"),
    "chunk size 0x0": ([CHUNKED], "0x0\r\n\r\n"),
    "chunk size 0_0": ([CHUNKED], "0_0\r\n\r\n"),
    "chunk size and a blank": ([CHUNKED], "0 \r\n\r\n"),
    "blank and a chunk size": ([CHUNKED], " 0\r\n\r\n"),
    "no chunk size": ([CHUNKED], "\r\n\r\n"),
    "chunk size in words": ([CHUNKED], "x\r\n\r\n"),
    "two chunk sizes": ([CHUNKED], "0 0\r\n\r\n"),
    "chunk size of 9,000 digits": ([CHUNKED], f"{'8' * 9000}\r\n\r\n"),
    "chunk extension with NUL": ([CHUNKED], "0;\0\r\n\r\n"),
    "chunk that ends in LF": ([CHUNKED], "0\n\n"),
    "chunk extension with LF": ([CHUNKED], "2;\n{}\r\n0\r\n\r\n"),
    "chunk extension with CR": ([CHUNKED], "2;a\rb\r\n{}\r\n0\r\n\r\n"),
    "chunk that is longer than it says": ([CHUNKED], "1\r\n{}\r\n0\r\n\r\n"),
    "chunk that is shorter than it says": ([CHUNKED], "3\r\n{}\r\n0\r\n\r\n"),
    "trailer with a length": ([CHUNKED], "2\r\n{}\r\n0\r\nContent-Length: 500\r\n\r\n"),
    "trailer with a coding": ([CHUNKED], "2\r\n{}\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "trailer with LF": ([CHUNKED], "2\r\n{}\r\n0\r\nX: y\n\r\n\r\n"),
    "trailer with a credential": ([CHUNKED], "2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\n\r\n"),
}


@pytest.mark.parametrize("kind", AMBIGUOUS)
def test_ambiguous_request_is_a_400_and_ends_the_connection(
    target: Target, victim: Tenant, attacker: Tenant, kind: str
) -> None:
    event = victim.send_secret()
    headers, before = AMBIGUOUS[kind]
    responses = target.exchange(format_head(attacker, *headers) + before + format_hidden(victim), half_close=False)
    assert [is_problem(response, 400, "bad-request") for response in responses] == [True]
    assert (victim.list_events(), attacker.list_events()) == ([(event, "undelivered", 0)], [])


@pytest.mark.parametrize("length", [2**31, 2**63, 2**64, 10**100])
def test_huge_length_does_not_overflow(target: Target, victim: Tenant, attacker: Tenant, length: int) -> None:
    event = victim.send_secret()
    # The service stops reading above the limit for an event.
    too_much = " " * 263_000
    for head, before in ((f"Content-Length: {length}", ""), (CHUNKED, f"{length:x}\r\n{too_much}")):
        [response] = target.exchange(format_head(attacker, head) + before + format_hidden(victim))
        assert is_problem(response, 413, "too-large") or is_problem(response, 400, "bad-request"), head
    assert (victim.list_events(), attacker.list_events()) == ([(event, "undelivered", 0)], [])


@pytest.mark.parametrize(
    "first_line",
    [
        "GET  /healthz HTTP/1.1",
        "GET /healthz  HTTP/1.1",
        "GET /healthz HTTP/1.1 ",
        " GET /healthz HTTP/1.1",
        "GET\t/healthz\tHTTP/1.1",
        "GET /healthz HTTP/1.1\nX: y",
        "\nGET /healthz HTTP/1.1",
        "\r\n\r\nGET /healthz HTTP/1.1",
        "GET /healthz http/1.1",
        "GET /healthz HTTP/1.1\r\n X: y",
        "GET /healthz\r\nHTTP/1.1",
        "GET /healthz",
        "PRI * HTTP/2.0",
    ],
)
def test_malformed_request_line_ends_the_connection(target: Target, victim: Tenant, first_line: str) -> None:
    event = victim.send_secret()
    responses = target.exchange(f"{first_line}\r\nHost: x\r\n\r\n" + format_hidden(victim), half_close=False)
    assert [is_problem(response, 400, "bad-request") for response in responses] == [True]
    assert victim.list_events() == [(event, "undelivered", 0)]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/events", 401), ("POST", "/nowhere", 404), ("GET", "/healthz", 200), ("DELETE", "/events", 405)],
)
def test_unread_body_is_not_the_next_request(
    target: Target, victim: Tenant, method: str, path: str, status: int
) -> None:
    event = victim.send_secret()
    inside = format_hidden(victim)
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n"
    responses = target.exchange(f"{head}Content-Length: {len(inside)}\r\n\r\n{inside}")
    assert [response.status for response in responses] == [status]
    responses = target.exchange(f"{head}{CHUNKED}\r\n\r\n{len(inside):x}\r\n{inside}\r\n{EMPTY}")
    assert [response.status for response in responses] == [status]
    # The first response is sent before the error is found. A second one would be taken for another client's response.
    responses = target.exchange(f"{head}{CHUNKED}\r\n\r\nZZ\r\n{inside}", half_close=False)
    assert [response.status for response in responses] == [status]
    assert victim.list_events() == [(event, "undelivered", 0)]


def test_trailers_are_ignored(target: Target, victim: Tenant, attacker: Tenant) -> None:
    trailers = f"X-API-Key: {victim.key}\r\nIdempotency-Key: k\r\nX-Inbox-Principal: x\r\nContent-Type: text/plain\r\n"
    body = f'{len(EVENT):x};ext="a;b"\r\n{EVENT}\r\n0;ext\r\n{trailers}\r\n'
    without_key = format_head(attacker, CHUNKED).replace(f"{attacker.authorization}\r\n", "")
    for head, statuses in (
        (without_key, [401]),
        (format_head(attacker, CHUNKED), [201]),
        (format_head(attacker, CHUNKED), [201]),
    ):
        assert [response.status for response in target.exchange(head + body)] == statuses
    assert (victim.list_events(), len(attacker.list_events())) == ([], 2)
