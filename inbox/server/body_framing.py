"""Request bodies, framed by length or in chunks. The event loop collects them before the app reads them."""

from io import BytesIO
from typing import NoReturn

from httptools import HttpParserError, HttpRequestParser

_CHUNKED_HEAD = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
# Chunk sizes, extensions and trailers may take as many bytes as the body itself, plus this many.
_MAX_FRAMING_BYTES = 64 * 1024
# A proxy that merges trailers into the head would forward another request (RFC 9110, section 6.5.1).
_FORBIDDEN_TRAILERS = frozenset({b"authorization", b"content-length", b"host"})


class BodyNeeded(BaseException):
    """The app wants to read a body that has not arrived, up to `max_bytes` of it.

    Not an Exception: the app must not turn it into a response.
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
    """`wsgi.input` if the body is malformed, incomplete or too slow."""

    def read(self, _size: int = -1) -> NoReturn:
        raise OSError("The body is incomplete")


class SizedBody:
    """A body with a Content-Length."""

    is_malformed = False

    def __init__(self, size: int) -> None:
        self.file = BytesIO()
        self._size = size

    @property
    def is_complete(self) -> bool:
        return self.file.tell() == self._size

    def feed(self, data: bytes) -> bytes:
        """Reads the bytes of the body. Returns the rest, which belong to the next request."""
        missing_bytes = self._size - self.file.tell()
        self.file.write(data[:missing_bytes])
        return data[missing_bytes:]


class ChunkedBody:
    """A body in chunks. Trailers are ignored, except for forbidden ones, which make the body malformed."""

    def __init__(self) -> None:
        self.file = BytesIO()
        self.is_complete = self.is_malformed = False
        self._framing_bytes = self._chunk_bytes_left = 0
        self._line = b""
        self._parser = HttpRequestParser(self)
        self._parser.feed_data(_CHUNKED_HEAD)

    def feed(self, data: bytes) -> bytes:
        """Reads the bytes of the body. Returns the rest, which belong to the next request."""
        end = 0
        while end < len(data) and not self.is_complete and not self.is_malformed:
            start = end
            if self._chunk_bytes_left:
                end = min(start + self._chunk_bytes_left, len(data))
                self._chunk_bytes_left -= end - start
            else:
                # Line by line, so that the parser receives nothing of the next request.
                end = data.find(b"\n", start) + 1 or len(data)
                self._line += data[start:end]
                self._framing_bytes += end - start
            try:
                self._parser.feed_data(data[start:end])
            except HttpParserError:
                self.is_malformed = True
            if self._line.endswith(b"\n"):
                self._line = b""
            self.is_malformed |= self._framing_bytes > _MAX_FRAMING_BYTES + self.file.tell()
        return data[end:]

    # The parser calls these by their names.

    def on_body(self, data: bytes) -> None:
        self.file.write(data)

    def on_chunk_header(self) -> None:
        self._chunk_bytes_left = int(self._line.partition(b";")[0], 16)

    def on_header(self, name: bytes, _value: bytes) -> None:
        if name.lower() in _FORBIDDEN_TRAILERS:
            raise ValueError

    def on_message_complete(self) -> None:
        self.is_complete = True
