"""The threads that run the Flask app."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from inbox.api.problem_catalogue import INTERNAL_ERROR, Problem
from inbox.api.problems import CONTENT_TYPE, problem_document
from inbox.api.request_trail import new_request_id
from inbox.server.bodies import BodyNeeded
from inbox.server.request_heads import Environ

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

_log = structlog.get_logger()


class Answer(NamedTuple):
    """`head` lacks the headers that depend on the connection, and the empty line."""

    head: bytes
    body: bytes


Outcome = Answer | BodyNeeded
OnOutcome = Callable[[Outcome], object]


class AppThreads:
    def __init__(self, app: "WSGIApplication", loop: asyncio.AbstractEventLoop, count: int) -> None:
        self._app = app
        self._loop = loop
        # Unbounded, but a connection has only one request under way, and connections are bounded.
        self._requests: SimpleQueue[tuple[Environ, OnOutcome]] = SimpleQueue()
        for number in range(count):
            Thread(target=self._work, name=f"app {number}", daemon=True).start()

    def submit(self, environ: Environ, on_outcome: OnOutcome) -> None:
        """Runs the app in one of the threads, then calls `on_outcome` in the event loop."""
        self._requests.put((environ, on_outcome))

    def _work(self) -> None:
        while True:
            environ, on_outcome = self._requests.get()
            outcome = self._run(environ)
            # When the process stops, the loop may close before the last threads are done.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(on_outcome, outcome)
            del environ, on_outcome, outcome

    def _run(self, environ: Environ) -> Outcome:
        try:
            return _call(self._app, environ)
        except BodyNeeded as needed:
            return needed
        except Exception as error:
            request_id = new_request_id()
            # The message may quote what was sent.
            _log.error("bug", error=type(error).__name__, request_id=request_id)
            return problem_answer(INTERNAL_ERROR, request_id)
        finally:
            # Flask leaves its request here, which refers to the environ in turn.
            environ.pop("werkzeug.request", None)


def problem_answer(problem: Problem, request_id: str, *headers: tuple[str, str]) -> Answer:
    body = problem_document(problem, problem.meaning, request_id)
    return _answer(
        f"{problem.status} {problem.title}",
        [("Content-Type", CONTENT_TYPE), ("X-Request-Id", request_id), *headers],
        body,
        has_body=True,
    )


def _call(app: "WSGIApplication", environ: Environ) -> Answer:
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
    has_body = environ["REQUEST_METHOD"] != "HEAD" and status[:3] not in ("204", "304")
    return _answer(status, headers, b"".join(pieces), has_body=has_body)


def _answer(status: str, headers: list[tuple[str, str]], body: bytes, *, has_body: bool) -> Answer:
    lines = [f"HTTP/1.1 {status}\r\n", *(f"{name}: {value}\r\n" for name, value in headers)]
    if has_body and not any(name.lower() == "content-length" for name, _ in headers):
        lines.append(f"Content-Length: {len(body)}\r\n")
    return Answer("".join(lines).encode("latin-1"), body if has_body else b"")
