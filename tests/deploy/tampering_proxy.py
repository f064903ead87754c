"""Stands between a client and a service, and changes answers: deployments that are wrong in one way."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests


@dataclass
class Passed:
    """A call, and the answer as the service gave it. What changes it is what the client gets."""

    call: str
    has_key: bool
    status: int
    headers: dict[str, str]
    body: bytes


def on(call: str, change: Callable[[Passed], None], times: int = 1_000) -> Callable[[Passed], None]:
    """That change, for calls that begin like this, the first times."""
    left = iter(range(times))

    def change_some(passed: Passed) -> None:
        if passed.call.startswith(call) and next(left, None) is not None:
            change(passed)

    return change_some


def status(number: int) -> Callable[[Passed], None]:
    return lambda passed: setattr(passed, "status", number)


def body(pattern: bytes, replacement: bytes) -> Callable[[Passed], None]:
    return lambda passed: setattr(passed, "body", re.sub(pattern, replacement, passed.body))


def without(header: str) -> Callable[[Passed], None]:
    def change(passed: Passed) -> None:
        passed.headers.pop(header, None)

    return change


@contextmanager
def tampering(service_url: str, change: Callable[[Passed], None]) -> Iterator[str]:
    """The URL of what stands between."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            call = f"{self.command} {self.path}"
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            real = requests.request(
                self.command, service_url + self.path, data=body, headers=dict(self.headers), timeout=30
            )
            passed = Passed(
                call, "Authorization" in self.headers, real.status_code, dict(real.headers.items()), real.content
            )
            change(passed)
            self.send_response_only(passed.status)
            for name, value in passed.headers.items():
                if name not in ("Content-Length", "Connection", "Transfer-Encoding"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(passed.body)

        do_GET = do_HEAD = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
