"""Heads and bodies of the app's responses."""

from typing import TYPE_CHECKING

import pytest

from inbox.server.wsgi_calls import call_app

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def failing_app(_environ: "WSGIEnvironment", _start_response: "StartResponse") -> list[bytes]:
    raise RuntimeError


@pytest.mark.parametrize(("method", "has_body"), [("GET", True), ("HEAD", False)])
def test_failure_is_a_500_with_a_body_unless_the_method_is_head(method: str, has_body: bool) -> None:
    response = call_app(failing_app, {"REQUEST_METHOD": method})
    assert response.head.startswith(b"HTTP/1.1 500 ")
    assert bool(response.body) == has_body


def test_date_header_of_the_app_is_removed() -> None:
    def app_with_file(_environ: "WSGIEnvironment", start_response: "StartResponse") -> list[bytes]:
        start_response("200 OK", [("Date", "Sat, 15 Nov 1997 00:00:00 GMT"), ("ETag", '"1"')])
        return [b"file"]

    response = call_app(app_with_file, {"REQUEST_METHOD": "GET"})
    assert response == (b'HTTP/1.1 200 OK\r\nETag: "1"\r\nContent-Length: 4\r\n', b"file")
