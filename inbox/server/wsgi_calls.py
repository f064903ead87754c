"""One call of the Flask app: from a WSGI environ to the bytes of a response."""

from typing import Any, NamedTuple
from wsgiref.types import WSGIApplication, WSGIEnvironment

from inbox.api.access_log import new_request_id
from inbox.api.problem_types import INTERNAL_ERROR, Problem
from inbox.api.problems import CONTENT_TYPE, log_bug, problem_document
from inbox.server.body_framing import BodyNeeded


class Response(NamedTuple):
    head: bytes
    """Ends before the Date and Connection headers."""
    body: bytes


def call_app(app: WSGIApplication, environ: WSGIEnvironment) -> Response:
    """Returns the app's response, or a 500 if the app fails. Raises BodyNeeded."""
    try:
        return _call(app, environ)
    except BodyNeeded:
        raise
    except BaseException as error:
        request_id = new_request_id()
        log_bug(error, request_id)
        response = problem_response(INTERNAL_ERROR, request_id)
        return response._replace(body=b"") if environ["REQUEST_METHOD"] == "HEAD" else response
    finally:
        # Flask leaves a reference cycle: its request refers to the environ.
        environ.pop("werkzeug.request", None)


def problem_response(problem: Problem, request_id: str, *headers: tuple[str, str]) -> Response:
    body = problem_document(problem, problem.meaning, request_id)
    headers = ("Content-Type", CONTENT_TYPE), ("X-Request-Id", request_id), *headers
    return Response(_head(f"{problem.status} {problem.title}", [*headers], body), body)


def _call(app: WSGIApplication, environ: WSGIEnvironment) -> Response:
    status, headers, pieces = "", list[tuple[str, str]](), list[bytes]()

    def start_response(given_status: str, given_headers: list[tuple[str, str]], _exc_info: Any = None) -> Any:
        nonlocal status, headers
        status, headers = given_status, given_headers
        return pieces.append

    result = app(environ, start_response)
    try:
        pieces.extend(result)
    finally:
        if hasattr(result, "close"):
            result.close()
    if environ["REQUEST_METHOD"] == "HEAD" or status[:3] in ("204", "304"):
        return Response(_head(status, headers), b"")
    body = b"".join(pieces)
    return Response(_head(status, headers, body), body)


def _head(status: str, headers: list[tuple[str, str]], body: bytes | None = None) -> bytes:
    # Flask dates files; the server dates every response.
    lines = [f"{name}: {value}\r\n" for name, value in headers if name != "Date"]
    head = "".join([f"HTTP/1.1 {status}\r\n", *lines])
    if body is not None and all(name.lower() != "content-length" for name, _ in headers):
        head += f"Content-Length: {len(body)}\r\n"
    return head.encode("latin-1")
