"""The app's failures."""

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
