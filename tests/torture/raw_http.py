"""HTTP over a plain socket, for requests that no client library sends."""

import json
import resource
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from typing import Any

from tests.service import Service

AS_JSON = "Content-Type: application/json"


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Connection:
    def __init__(self, service: Service, timeout_seconds: float = 40) -> None:
        self.socket = socket.create_connection(("127.0.0.1", service.port), timeout=timeout_seconds)
        self._reader: BufferedReader = self.socket.makefile("rb")

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def try_to_send(self, data: bytes) -> bool:
        """Returns False if the service has closed the connection."""
        try:
            self.send(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def half_close(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def read_response(self) -> Response:
        response = self._read()
        assert response is not None, "The service has closed the connection"
        return response

    def read_responses(self) -> list[Response]:
        """Returns all responses until the service closes the connection."""
        return list(iter(self._read, None))

    def _read(self) -> Response | None:
        """Returns None if the service has closed the connection."""
        try:
            head = self._reader.readline()
            if not head:
                return None
            headers = {}
            while (line := self._reader.readline().strip()) != b"":
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.strip().lower()] = value.strip()
            body = self._reader.read(int(headers.get("content-length", 0)))
        except ConnectionResetError:
            return None
        return Response(int(head.split()[1]), headers, body)


@contextmanager
def open_connections(service: Service, count: int) -> Iterator[list[Connection]]:
    """Yields open connections. Raises the limit of file descriptors to the hard limit."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    with ExitStack() as stack:
        yield [stack.enter_context(Connection(service)) for _ in range(count)]


def format_head(method: str, path: str, key: str, *lines: str) -> bytes:
    """Returns a request head including its empty line."""
    all_lines = (f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {key}", *lines)
    return "".join(f"{line}\r\n" for line in (*all_lines, "")).encode("latin-1")


def format_post(key: str, body: bytes, *lines: str, length: int | str | None = None) -> bytes:
    """Returns a POST /events whose Content-Length may differ from the length of its body."""
    length = len(body) if length is None else length
    return format_head("POST", "/events", key, AS_JSON, f"Content-Length: {length}", *lines) + body


def format_chunks(key: str, *pieces: bytes) -> bytes:
    """Returns a chunked POST /events without the last chunk."""
    beginning = format_head("POST", "/events", key, AS_JSON, "Transfer-Encoding: chunked")
    return beginning + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
