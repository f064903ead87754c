"""Parses request heads into a WSGI environ, and refuses ambiguous ones.

gunicorn's parser in C lets a line end without CR, continues a header on the next line and accepts several spaces in the
request line. Its parser in Python refuses these. Both accept more transfer codings than `chunked`.

Private parts of gunicorn: both parsers (`gunicorn_h1c`, `gunicorn.asgi.parser`) and `gunicorn.util.split_request_uri`.
tests/torture/hostile notices if they change.
"""

import sys
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from gunicorn.asgi.parser import PythonProtocol
from gunicorn.util import split_request_uri

try:
    from gunicorn_h1c import H1CProtocol as HeadParser
except ImportError:
    HeadParser = PythonProtocol

# Proxies differ on which value of a repeated header counts.
_SINGLE_HEADERS = frozenset({"HTTP_HOST", "HTTP_IDEMPOTENCY_KEY", "HTTP_INBOX_ATTEMPT", "HTTP_TRANSFER_ENCODING"})

Environ = dict[str, Any]


class InvalidHead(Exception):
    """The head is not HTTP, or is ambiguous."""


class Head(NamedTuple):
    environ: Environ
    body_bytes: int
    """What Content-Length announces."""
    is_chunked: bool
    keeps_alive: bool
    expects_continue: bool


class HeadReader:
    """Reads complete heads, one after the other. `base` holds the variables that all requests share."""

    def __init__(self, cfg: Any, base: Environ) -> None:
        self._base = base
        self.limits = {
            "limit_request_line": cfg.limit_request_line,
            "limit_request_fields": cfg.limit_request_fields,
            "limit_request_field_size": cfg.limit_request_field_size,
        }
        self._parser = HeadParser(**self.limits)

    def read(self, head: bytes, client_address: Any) -> Head:
        """Raises InvalidHead."""
        parser = self._parser
        _check_lines(head)
        try:
            parser.feed(head)
            environ = self._environ(parser, client_address)
            return Head(
                environ,
                # The C parser wraps lengths at 2**64.
                int(environ.get("CONTENT_LENGTH", 0)),
                parser.is_chunked,
                parser.should_keep_alive and "close" not in environ.get("HTTP_CONNECTION", "").lower(),
                "HTTP_EXPECT" in environ and parser.http_version >= (1, 1),
            )
        except InvalidHead:
            raise
        except Exception as error:
            # The C parser has two unrelated classes of errors. The message may quote a key, so only the kind is kept.
            raise InvalidHead(type(error).__name__) from None
        finally:
            parser.reset()

    def _environ(self, parser: Any, client_address: Any) -> Environ:
        environ = self._base.copy()
        for name, value in parser.headers:
            variable = _variable_of(name)
            if variable is None:
                continue
            text = value.decode("latin-1")
            if variable in environ:
                if variable in _SINGLE_HEADERS:
                    raise InvalidHead(f"repeated {variable}")
                text = f"{environ[variable]},{text}"
            environ[variable] = text
        if environ.get("HTTP_TRANSFER_ENCODING", "chunked").lower() != "chunked":
            raise InvalidHead("unsupported transfer coding")
        if environ.get("HTTP_EXPECT", "100-continue").lower() != "100-continue":
            raise InvalidHead("unsupported expectation")
        if "HTTP_HOST" not in environ and parser.http_version >= (1, 1):
            raise InvalidHead("no Host")
        target = parser.path.decode("latin-1")
        path, _, query = target.partition("?")
        if path[:1] != "/" or path[:2] == "//" or "#" in target:
            parts = split_request_uri(target)
            path, query = parts.path or "", parts.query or ""
        environ["REQUEST_METHOD"] = parser.method.decode("latin-1")
        environ["RAW_URI"] = target
        environ["PATH_INFO"] = unquote_to_bytes(path).decode("latin-1") if "%" in path else path
        environ["QUERY_STRING"] = query
        environ["SERVER_PROTOCOL"] = f"HTTP/1.{parser.http_version[1]}"
        if client_address:
            environ["REMOTE_ADDR"] = client_address[0]
        return environ


def base_environ(server_address: Any) -> Environ:
    host, port = (server_address[0], str(server_address[1])) if isinstance(server_address, tuple) else ("", "")
    return {
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        # A chunked body is complete when the app gets it, so the app may read to its end.
        "wsgi.input_terminated": True,
        "SCRIPT_NAME": "",
        "SERVER_NAME": host,
        "SERVER_PORT": port,
        "REMOTE_ADDR": "",
    }


def _check_lines(head: bytes) -> None:
    if head.count(b"\n") != head.count(b"\r\n"):
        raise InvalidHead("bare LF")
    if b"\r\n " in head or b"\r\n\t" in head:
        raise InvalidHead("folded header")
    # One empty line may come before the request (RFC 9112, section 2.2).
    request_line = head.removeprefix(b"\r\n").partition(b"\r\n")[0]
    if request_line.count(b" ") != 2 or not request_line.isascii():
        raise InvalidHead("malformed request line")


@lru_cache(maxsize=1024)
def _variable_of(name: bytes) -> str | None:
    # `X-Api-Key` and `X_Api_Key` would be the same variable, so the client could overwrite what a proxy sets.
    if b"_" in name:
        return None
    variable = name.decode("latin-1").upper().replace("-", "_")
    return variable if variable in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{variable}"
