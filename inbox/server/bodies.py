"""Bodies of requests, collected in the event loop before the app reads them.

Private part of gunicorn: its parser for chunks. tests/torture/test_broken_requests.py notices if it changes.
"""

from io import BytesIO
from typing import Any, NoReturn

from gunicorn.asgi.parser import PythonProtocol

_CHUNKED_HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


class BodyNeeded(BaseException):
    """The app wants to read a body that has not arrived, up to `max_bytes` of it.

    Not an Exception: the app must not turn it into an answer.
    """

    def __init__(self, max_bytes: float) -> None:
        self.max_bytes = max_bytes


class MissingBody:
    """`wsgi.input` while the body has not arrived, so that the app can refuse a request by its head alone.

    The first read must ask for as much as the app will ever read.
    """

    def read(self, size: int = -1) -> NoReturn:
        raise BodyNeeded(size if size >= 0 else float("inf"))


class BrokenBody:
    """`wsgi.input` of a body that is malformed, cut off or too slow."""

    def read(self, _size: int = -1) -> NoReturn:
        raise OSError("The body is incomplete")


class SizedBody:
    """A body with a Content-Length."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.file = BytesIO()
        self.rest = b""
        """What follows the body: the next request."""

    def feed(self, data: bytes) -> bool:
        """Returns True when the body is complete."""
        missing_bytes = self._size - self.file.tell()
        self.file.write(data[:missing_bytes])
        self.rest = data[missing_bytes:]
        return self.file.tell() == self._size


class ChunkedBody:
    """A body in chunks.

    Uses gunicorn's Python parser: the C parser accepts bare LF in extensions and trailers, and sizes wrap at 2**64.
    """

    def __init__(self, limits: dict[str, int]) -> None:
        self.file = BytesIO()
        self._parser: Any = PythonProtocol(on_body=self.file.write, **limits)
        self._parser.feed(_CHUNKED_HEAD)

    def feed(self, data: bytes) -> bool:
        """Returns True when the body is complete. Raises gunicorn's ParseError if it is malformed."""
        self._parser.feed(data)
        complete: bool = self._parser.is_complete
        return complete

    @property
    def rest(self) -> bytes:
        rest: bytes = self._parser.remaining()
        return rest
