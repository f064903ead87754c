"""Parses the heads of requests into WSGI environs.

llhttp, the parser of Node.js, refuses most requests that two programs could read differently, such as bare LF, folded
headers or a length beside chunks. `_check` refuses the rest.
"""

import re
import sys
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit
from wsgiref.types import WSGIEnvironment

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

_MAX_LINE_BYTES = 8190
_MAX_HEADERS = 100
# One empty line may come before it (RFC 9112, section 2.2).
_REQUEST_LINE = re.compile(rb"(?:\r\n)?[!-~]+ [!-~]+ HTTP/1\.[01]\r\n")
_MAX_LENGTH_DIGITS = 20
_HOST = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=%:\[\]-]*")
# Proxies differ on which value of a repeated header counts.
_SINGLE_HEADERS = frozenset(
    {"CONTENT_TYPE", "HTTP_HOST", "HTTP_IDEMPOTENCY_KEY", "HTTP_INBOX_ATTEMPT", "HTTP_TRANSFER_ENCODING"}
)


class InvalidHead(Exception):
    """The head is not HTTP, or is ambiguous."""


class Head(NamedTuple):
    environ: WSGIEnvironment
    body_bytes: int
    """Value of Content-Length, 0 without one."""
    is_chunked: bool
    keeps_alive: bool
    expects_continue: bool


class _ParsedHead:
    """Collects what llhttp finds."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []

    def on_url(self, url: bytes) -> None:
        self.url = url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))


def parse_head(head: bytes, base: WSGIEnvironment, client_address: Any) -> Head:
    """Parses and returns a complete head. `base` holds the variables that all requests share. Raises InvalidHead."""
    request_line = _REQUEST_LINE.match(head)
    if request_line is None or len(request_line[0]) > _MAX_LINE_BYTES:
        raise InvalidHead("malformed request line")
    parsed = _ParsedHead()
    parser = HttpRequestParser(parsed)
    try:
        parser.feed_data(head)
    except HttpParserUpgrade:
        # The service speaks HTTP/1.1 only, so it ignores the header Upgrade.
        pass
    except HttpParserError as error:
        raise InvalidHead(str(error)) from None
    version = parser.get_http_version()
    environ = base | _headers(parsed.headers) | _target(parsed.url.decode("latin-1"))
    environ["REQUEST_METHOD"] = parser.get_method().decode("latin-1")
    environ["SERVER_PROTOCOL"] = f"HTTP/{version}"
    if client_address:
        environ["REMOTE_ADDR"] = client_address[0]
    _check(environ)
    connection = environ.get("HTTP_CONNECTION", "").lower()
    return Head(
        environ,
        int(environ.get("CONTENT_LENGTH", 0)),
        "HTTP_TRANSFER_ENCODING" in environ,
        "close" not in connection and (version == "1.1" or "keep-alive" in connection),
        "HTTP_EXPECT" in environ and version == "1.1",
    )


def _headers(headers: list[tuple[bytes, bytes]]) -> WSGIEnvironment:
    if len(headers) > _MAX_HEADERS:
        raise InvalidHead("too many headers")
    environ: WSGIEnvironment = {}
    for name, value in headers:
        if len(name) + len(value) > _MAX_LINE_BYTES:
            raise InvalidHead("header too large")
        variable = _variable_of(name)
        if variable is None:
            continue
        text = value.decode("latin-1").rstrip(" \t")
        if variable in environ:
            if variable in _SINGLE_HEADERS:
                raise InvalidHead(f"repeated {variable}")
            text = f"{environ[variable]},{text}"
        environ[variable] = text
    return environ


def _target(target: str) -> WSGIEnvironment:
    path, _, query = target.partition("?")
    if path[:1] != "/":
        try:
            path = urlsplit(path).path
        except ValueError:
            raise InvalidHead("malformed target") from None
    path = unquote_to_bytes(path).decode("latin-1") if "%" in path else path
    return {"RAW_URI": target, "PATH_INFO": path, "QUERY_STRING": query}


def base_environ(server_address: Any) -> WSGIEnvironment:
    host, port = (server_address[0], str(server_address[1])) if isinstance(server_address, tuple) else ("", "")
    return {
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        # A chunked body is complete before the app runs, so the app may read to its end.
        "wsgi.input_terminated": True,
        "SCRIPT_NAME": "",
        "SERVER_NAME": host,
        "SERVER_PORT": port,
        "REMOTE_ADDR": "",
    }


def _check(environ: WSGIEnvironment) -> None:
    version = environ["SERVER_PROTOCOL"]
    if "HTTP_HOST" not in environ and version == "HTTP/1.1":
        raise InvalidHead("no Host")
    if not _HOST.fullmatch(environ.get("HTTP_HOST", "")):
        raise InvalidHead("malformed Host")
    # llhttp accepts any number of leading zeros, and int() does not.
    if len(environ.get("CONTENT_LENGTH", "")) > _MAX_LENGTH_DIGITS:
        raise InvalidHead("malformed Content-Length")
    if environ.get("HTTP_EXPECT", "100-continue").lower() != "100-continue":
        raise InvalidHead("unsupported expectation")
    if environ.get("HTTP_TRANSFER_ENCODING", "chunked").lower() != "chunked":
        raise InvalidHead("unsupported transfer coding")
    if "HTTP_TRANSFER_ENCODING" in environ and version == "HTTP/1.0":
        raise InvalidHead("transfer coding in HTTP/1.0")
    if environ["RAW_URI"] == "*" and environ["REQUEST_METHOD"] != "OPTIONS":
        raise InvalidHead("malformed target")


@lru_cache(maxsize=1024)
def _variable_of(name: bytes) -> str | None:
    # `X-Api-Key` and `X_Api_Key` would be the same variable, so the client could overwrite what a proxy sets.
    if b"_" in name:
        return None
    variable = name.decode("latin-1").upper().replace("-", "_")
    return variable if variable in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{variable}"
