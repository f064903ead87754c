"""Requests that come in pieces: nothing of them is lost, and nobody waits for the rest."""

import socket
from collections.abc import Iterator

import pytest
from gunicorn.config import Config

from inbox.arriving import MOST_GATHERED_BYTES, ArrivingParser
from inbox.patience import PatientSocket, Places, TooSlow

HEAD = b"POST /events HTTP/1.1\r\nHost: x\r\nX-Long: " + b"y" * 50 + b"\r\nContent-Length: 11\r\n\r\n"
BODY = b"hello world"


Ends = tuple[ArrivingParser, socket.socket]


# With gunicorn's C parser where it is installed, and without.
@pytest.fixture(params=["auto", "python"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    config = Config()
    config.set("http_parser", request.param)
    accepted, client = socket.socketpair()
    with client, PatientSocket(accepted, Places(1)) as ours:
        yield ArrivingParser(config, ours, ("127.0.0.1", 1)), client


def test_byte_by_byte_it_is_the_same_request(ends: Ends) -> None:
    parser, client = ends
    # Twice, with nothing between the two.
    for _ in range(2):
        for byte in (HEAD + BODY)[:-1]:
            client.send(bytes([byte]))
            assert not parser.has_request(0)
        client.send(BODY[-1:])
        assert parser.has_request(0)
        request = next(parser)
        assert (request.method, request.path) == ("POST", "/events")
        assert dict(request.headers)["X-LONG"] == "y" * 50
        assert request.body.read() == BODY
        assert not request.should_close()
        assert parser.deadline is None
    assert parser.req_count == 2


def test_the_deadline_is_that_of_the_first_byte(ends: Ends) -> None:
    parser, client = ends
    assert not parser.has_request(0)
    assert parser.deadline is None
    client.send(HEAD[:5])
    assert not parser.has_request(0)
    deadline = parser.deadline
    client.send(HEAD[5:-1])
    assert not parser.has_request(0)
    assert (parser.deadline, parser.awaits_body) == (deadline, False)
    client.send(HEAD[-1:])
    assert not parser.has_request(0)
    assert parser.awaits_body
    assert (parser.deadline or 0) > (deadline or 0)


def test_a_body_that_is_given_up_cannot_be_read_and_the_connection_not_be_used_again(ends: Ends) -> None:
    parser, client = ends
    client.send(HEAD + BODY[:5])
    assert not parser.has_request(0)
    parser.give_up()
    assert parser.has_request(0)
    request = next(parser)
    with pytest.raises(TooSlow):
        request.body.read()
    assert request.should_close()


def test_a_body_that_came_just_as_it_was_given_up_changes_nothing_for_the_next(ends: Ends) -> None:
    parser, client = ends
    client.send(HEAD + BODY[:5])
    assert not parser.has_request(0)
    parser.give_up()
    client.send(BODY[5:])
    assert parser.has_request(0)
    request = next(parser)
    assert request.body.read() == BODY
    assert not request.should_close()
    assert parser.deadline is None
    client.send(HEAD)
    assert not parser.has_request(0)


def test_a_large_body_is_not_gathered(ends: Ends) -> None:
    parser, client = ends
    client.send(HEAD.replace(b"11", str(MOST_GATHERED_BYTES + 1).encode()))
    assert parser.has_request(0)


def test_a_large_head_has_to_come_at_once(ends: Ends) -> None:
    parser, client = ends
    client.send(b"GET / HTTP/1.1\r\n")
    assert not parser.has_request(0)
    line = b"X-Long: " + b"y" * 4000 + b"\r\n"
    for _ in range(MOST_GATHERED_BYTES // len(line)):
        client.send(line)
        assert not parser.has_request(0)
    client.send(line)
    assert parser.has_request(0)
    with pytest.raises(Exception, match="in pieces"):
        next(parser)


def test_what_goes_wrong_while_gathering_is_raised_where_gunicorn_expects_it(ends: Ends) -> None:
    parser, client = ends
    client.close()
    assert parser.has_request(0)
    with pytest.raises(StopIteration):
        next(parser)
