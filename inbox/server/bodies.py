"""Bodies of requests, collected in the event loop before the app gets them."""

from typing import Any, NoReturn

from gunicorn.asgi.parser import PythonProtocol


class BodyNeeded(BaseException):
    """The app wants to read a body that has not arrived, up to `max_bytes` of it.

    Not an Exception: the app must not turn it into an answer.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes


class MissingBody:
    """`wsgi.input` while the body has not arrived, so that the app can refuse a request by its head alone."""

    def read(self, size: int = -1) -> NoReturn:
        raise BodyNeeded(size)


class BrokenBody:
    """`wsgi.input` of a body that is malformed, cut off or too slow."""

    def read(self, _size: int = -1) -> NoReturn:
        raise OSError("The body is incomplete")


class SizedBody:
    """A body with a Content-Length."""

    def __init__(self, size: int) -> None:
        self._missing_bytes = size
        self._pieces: list[bytes] = []
        self.received_bytes = 0
        self.rest = b""
        """What follows the body: the next request."""

    def feed(self, data: bytes) -> bool:
        """Returns True when the body is complete."""
        if len(data) > self._missing_bytes:
            data, self.rest = data[: self._missing_bytes], data[self._missing_bytes :]
        self._pieces.append(data)
        self.received_bytes += len(data)
        self._missing_bytes -= len(data)
        return self._missing_bytes == 0

    def data(self) -> bytes:
        return b"".join(self._pieces)


class ChunkedBody:
    """A body in chunks. gunicorn's parser in Python, because the one in C accepts bare LFs between chunks."""

    def __init__(self, head: bytes, limits: dict[str, int]) -> None:
        self._pieces: list[bytes] = []
        self.received_bytes = 0
        self._parser: Any = PythonProtocol(on_body=self._add, **limits)
        self._parser.feed(head)

    def feed(self, data: bytes) -> bool:
        """Returns True when the body is complete. Raises an error of the parser if it is malformed."""
        if data:
            self._parser.feed(data)
        complete: bool = self._parser.is_complete
        return complete

    @property
    def rest(self) -> bytes:
        rest: bytes = self._parser.remaining()
        return rest

    def data(self) -> bytes:
        return b"".join(self._pieces)

    def _add(self, piece: bytes) -> None:
        self._pieces.append(bytes(piece))
        self.received_bytes += len(piece)
