"""A proxy that changes responses of a service, to imitate wrongly configured deployments."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests


@dataclass
class Exchange:
    """A request, such as `GET /me`, and the response of the service. The proxy changes the response."""

    request: str
    has_key: bool
    status: int
    headers: dict[str, str]
    body: bytes


def on(request: str, change: Callable[[Exchange], None], max_times: int = 1_000) -> Callable[[Exchange], None]:
    """Returns a change that applies only to the first `max_times` requests that start with this text."""
    remaining = iter(range(max_times))

    def change_some(exchange: Exchange) -> None:
        if exchange.request.startswith(request) and next(remaining, None) is not None:
            change(exchange)

    return change_some


def set_status(status: int) -> Callable[[Exchange], None]:
    return lambda exchange: setattr(exchange, "status", status)


def replace_in_body(pattern: bytes, replacement: bytes) -> Callable[[Exchange], None]:
    return lambda exchange: setattr(exchange, "body", re.sub(pattern, replacement, exchange.body))


def remove_header(header: str) -> Callable[[Exchange], None]:
    def change(exchange: Exchange) -> None:
        exchange.headers.pop(header, None)

    return change


@contextmanager
def run_tampering_proxy(service_url: str, change: Callable[[Exchange], None]) -> Iterator[str]:
    """Starts the proxy and yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            request = f"{self.command} {self.path}"
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            service_response = requests.request(
                self.command, service_url + self.path, data=body, headers=dict(self.headers), timeout=30
            )
            exchange = Exchange(
                request,
                "Authorization" in self.headers,
                service_response.status_code,
                dict(service_response.headers.items()),
                service_response.content,
            )
            change(exchange)
            self.send_response_only(exchange.status)
            for name, value in exchange.headers.items():
                if name not in ("Content-Length", "Connection", "Transfer-Encoding"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(exchange.body)

        do_GET = do_HEAD = do_POST = do_DELETE = respond  # noqa: N815

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
